"""Scoped state: keys with versions that belong to a session, a user, an app or a project.

A key's prefix names its scope: `temp:` and `session:` belong to the session (so does a key with
no prefix), `user:` to one user of one app, `app:` to the app, `project:` to the project. Each key is
its own row, merged in SQL, so that two sessions of one user never overwrite each other's keys.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

from mnemon.access import Access
from mnemon.clock import Clock, moment
from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Sealing
from mnemon.encryption.vault import STATE, Vault
from mnemon.errors import ConflictError, InvalidInput, InvalidTransition, InvalidValue, SessionNotFound
from mnemon.journal import Journal, Origin, entry, match, origin_of, record
from mnemon.model import Level, SessionStatus, StateEntry
from mnemon.namespaces import ROOTS, check_identifier, check_key
from mnemon.ports import Raced, Row, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Fragment, load, params_of
from mnemon.values import decode, encode

_SQL = load("state")
_SESSIONS = load("sessions")
_OWN = ("temp:", "session:")  # the namespaces that are open to whoever may use the session
_OVER = frozenset({SessionStatus.TERMINATED, SessionStatus.ARCHIVED})


class Owner(TypedDict, total=False):
    """Whose state is meant: a session, from which the rest follows, or the ids that the scope needs."""

    session_id: str
    app_name: str
    user_id: str
    project_id: str | None


class Owners(NamedTuple):
    """The ids that state can belong to, as far as they are known."""

    session_id: str | None = None
    app_name: str | None = None
    user_id: str | None = None
    project_id: str | None = None

    def namespace(self, key: str) -> str:
        """The namespace that holds `key`; `InvalidInput` if its owner is not known."""
        scope = scope_of(key)
        owner = self._owner(scope)
        if owner is None:
            needed = " and ".join(_NEEDED[scope])
            raise InvalidInput(f"state key {key!r} belongs to a {scope}: it needs {needed}")
        return f"{scope}:{owner}"

    def namespaces(self) -> list[str]:
        """Every namespace that these owners have state in."""
        return [f"{scope}:{owner}" for scope in ROOTS if (owner := self._owner(scope)) is not None]

    def _owner(self, scope: str) -> str | None:
        if scope in ("session", "temp"):
            return self.session_id
        if scope == "user":
            return f"{self.user_id}:{self.app_name}" if self.user_id and self.app_name else None
        return self.app_name if scope == "app" else self.project_id


class SessionRow(NamedTuple):
    """A row of `sessions`, as `get_session` and the lists select it."""

    id: str
    app_name: str
    user_id: str
    project_id: str | None
    status: str
    metadata: str
    version: int
    event_count: int
    archived_count: int
    created_at: int
    last_update_time: int
    terminated_at: int | None
    archived_at: int | None

    @property
    def owners(self) -> Owners:
        return Owners(self.id, self.app_name, self.user_id, self.project_id)


_NEEDED = {
    "temp": ("session_id",),
    "session": ("session_id",),
    "user": ("user_id", "app_name"),
    "app": ("app_name",),
    "project": ("project_id",),
}


def scope_of(key: str) -> str:
    """The scope that a key's prefix names; without one of the five, the session."""
    prefix, colon, _ = key.partition(":")
    return prefix if colon and prefix in _NEEDED else "session"


def encode_delta(delta: Mapping[str, Any], settings: Settings) -> list[tuple[str, str]]:
    """Keys and JSON values in key order, in which they are always written: no two can deadlock."""
    if not isinstance(delta, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"a state delta must be a mapping of keys to values, not {type(delta).__name__}")
    longest, largest = settings.max_key_length, settings.max_value_bytes
    return sorted(
        [(check_key("a state key", key, longest), encode(key, value, largest)) for key, value in delta.items()]
    )


def rows_of(owners: Owners, delta: Iterable[tuple[str, str]], now: int) -> list[dict[str, Any]]:
    """An encoded delta as rows, each with the namespace of its owner."""
    return [{"namespace": owners.namespace(key), "key": key, "value": value, "now": now} for key, value in delta]


def allow(access: Access, namespaces: Iterable[str], level: Level) -> None:
    """Require a grant for shared state; a session's own was required with the session."""
    for namespace in namespaces:
        if not namespace.startswith(_OWN):
            access.require(namespace, level)


async def merge(tx: Transaction, rows: Sequence[Mapping[str, Any]], access: Access, vault: Vault | None = None) -> None:
    """Write the rows of a delta, each over what its key has at that moment; those that are encrypted with `vault`."""
    if access.principal:
        allow(access, {row["namespace"] for row in rows}, "write")
    if vault is not None:
        rows = [row for row in rows if await vault.put(tx, row) is None]
    await tx.execute_many(_SQL["merge_entry"], rows)


def own_keys(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The keys that belong to the session itself, which an event's own journal entry names."""
    return [row["key"] for row in rows if row["namespace"].startswith(_OWN)]


def entries(origin: Origin, operation: str, rows: Iterable[Mapping[str, Any]], *, own: bool) -> list[dict[str, Any]]:
    """One journal entry for each owner whose keys were touched; a session's own only if `own`."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        if own or not row["namespace"].startswith(_OWN):
            keys.setdefault(row["namespace"], []).append(row["key"])
    return [_entry(origin, namespace, operation, touched) for namespace, touched in keys.items()]


def _entry(
    origin: Origin, namespace: str, operation: str, keys: Sequence[str], version: int | None = None
) -> dict[str, Any]:
    shared = namespace.startswith(("app:", "project:"))
    return entry(
        origin, "state", namespace, operation,
        namespace=_journal_namespace(namespace), version=version, payload={"keys": keys}, shared=shared,
    )  # fmt: skip


def _journal_namespace(namespace: str) -> str:
    """A session's temporary state is told of with the session, where its events are."""
    return f"session:{namespace.removeprefix('temp:')}" if namespace.startswith("temp:") else namespace


async def touch(tx: Transaction, session: SessionRow, now: int, *, status: str | None = None, events: int = 0) -> int:
    """Give the session its next version, one for each event or one for any other change."""
    version = session.version + (events or 1)
    await tx.execute(
        _SESSIONS["touch_session"],
        {
            "id": session.id,
            "version": version,
            "event_count": session.event_count + events,
            "status": str(status or session.status),
            "now": now,
        },
    )
    return version


async def read_all(tx: Transaction, owners: Owners, access: Access, sealing: Sealing) -> dict[str, Any]:
    """Every key that these owners have and the caller may read."""
    found: dict[str, Any] = {}
    for namespace in owners.namespaces():
        if namespace.startswith(_OWN) or access.allows(namespace, "read"):
            rows = await tx.fetch_all(_SQL["list_entries"], _bounds(namespace, ""))
            for key, value, _, _ in await _opened(sealing, tx.fetch_all, namespace, rows):
                found[key] = decode(value)
    return found


async def _opened(sealing: Sealing, fetch: Fetch, namespace: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Rows of entries as they were before they were encrypted, if any were."""
    for row in rows:
        if row[1] is not None and is_sealed(row[1]):
            return await sealing.opened(fetch, STATE, rows, namespace=namespace)
    return rows


class StateStore:
    """Reading, writing, comparing and watching state, for all five scopes.

    Whose state is meant is said by keyword: `session_id="s1"` for any scope, or, without a session,
    `app_name=` and `user_id=` for `user:`, `app_name=` for `app:`, `project_id=` for `project:`.
    """

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, access: Access, sealing: Sealing | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._sealing = sealing or Sealing()
        self._journal = Journal(store, access)

    async def get(self, key: str, *, default: Any = None, **owner: Unpack[Owner]) -> Any:
        """The value, or `default` if the key is not set."""
        found = await self.entry(key, **owner)
        return default if found is None else found.value

    async def entry(self, key: str, **owner: Unpack[Owner]) -> StateEntry | None:
        """The value with its version, or None if the key is not set."""
        self._check(key)

        async def unit(tx: Transaction) -> StateEntry | None:
            namespace = (await self._resolve(tx, owner, [key], "read")).namespace(key)
            row = await tx.fetch_one(_SQL["get_entry"], {"namespace": namespace, "key": key})
            if row is None:
                return None
            if is_sealed(row[1]):
                [row] = await self._sealing.opened(tx.fetch_all, STATE, [row], namespace=namespace)
            return _state_entry(row)

        return await self._store.read(unit)

    async def set(
        self, key: str, value: Any, *, actor: str | None = None, task_id: str | None = None, **owner: Unpack[Owner]
    ) -> int:
        """Set one key; its new version."""
        return (await self.merge({key: value}, actor=actor, task_id=task_id, **owner))[key]

    async def merge(
        self,
        delta: Mapping[str, Any],
        *,
        actor: str | None = None,
        task_id: str | None = None,
        **owner: Unpack[Owner],
    ) -> dict[str, int]:
        """Set several keys at once, of any scopes, all or none; their new versions."""
        encoded = encode_delta(delta, self._settings)
        await self._prepare(owner, delta)

        async def unit(tx: Transaction) -> dict[str, int]:
            owners = await self._resolve(tx, owner, list(delta), "write")
            origin = self._origin(owners, actor, task_id)
            rows = rows_of(owners, encoded, origin.now)
            versions = await self._merged(tx, owners, rows)
            await record(tx, entries(origin, "merge", rows, own=True))
            return versions

        return await self._store.write(unit) if encoded else {}

    async def compare_and_set(
        self,
        key: str,
        value: Any,
        expected_version: int,
        *,
        actor: str | None = None,
        task_id: str | None = None,
        **owner: Unpack[Owner],
    ) -> int:
        """Set the key only if its version is still `expected_version` (0: only if it is not set).

        Returns the new version; `ConflictError` if it has another.
        """
        [(_, encoded)] = encode_delta({key: value}, self._settings)
        await self._prepare(owner, [key])

        async def unit(tx: Transaction) -> int:
            owners = await self._resolve(tx, owner, [key], "write")
            version = await self._replace(tx, owners, key, encoded, expected_version)
            if version is None:
                raise await self._conflict(tx, owners.namespace(key), key, expected_version)
            return await self._record(tx, owners, "set", key, version, actor, task_id)

        return await self._store.write(unit)

    async def update(
        self,
        key: str,
        function: Callable[[Any], Any],
        *,
        default: Any = None,
        actor: str | None = None,
        task_id: str | None = None,
        **owner: Unpack[Owner],
    ) -> Any:
        """Replace the value by `function(value)`, atomically; the new value.

        The function runs inside the transaction and again if another writer was quicker, so it
        should be quick and have no effect of its own.
        """
        self._check(key)
        await self._prepare(owner, [key])

        async def unit(tx: Transaction) -> Any:
            owners = await self._resolve(tx, owner, [key], "write")
            namespace = owners.namespace(key)
            rows = await tx.fetch_all(_SQL["get_entry"], {"namespace": namespace, "key": key})
            row = (await _opened(self._sealing, tx.fetch_all, namespace, rows))[0] if rows else None
            value = function(decode(row[1]) if row else default)
            [(_, encoded)] = encode_delta({key: value}, self._settings)
            version = await self._replace(tx, owners, key, encoded, row[2] if row else 0)
            if version is None:
                raise Raced
            await self._record(tx, owners, "set", key, version, actor, task_id)
            return value

        return await self._store.write(unit)

    async def delete(
        self,
        key: str,
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
        **owner: Unpack[Owner],
    ) -> bool:
        """Delete the key; False if it was not set."""
        self._check(key)
        same = [] if expected_version is None else [Fragment("version = :expected", {"expected": expected_version})]

        async def unit(tx: Transaction) -> bool:
            owners = await self._resolve(tx, owner, [key], "write")
            namespace = owners.namespace(key)
            params = {"namespace": namespace, "key": key, "now": self._clock.now(), "expected": expected_version}
            row = await tx.fetch_one(_SQL["delete_entry"].where(same), params)
            if row:
                await self._record(tx, owners, "delete", key, row[0], actor, task_id)
            elif expected_version is not None:
                raise await self._conflict(tx, namespace, key, expected_version)
            return row is not None

        return await self._store.write(unit)

    async def entries(self, prefix: str, **owner: Unpack[Owner]) -> list[StateEntry]:
        """The entries whose keys begin with `prefix`, in key order; the prefix names the scope."""

        async def unit(tx: Transaction) -> list[StateEntry]:
            namespace = (await self._resolve(tx, owner, [prefix], "read")).namespace(prefix)
            rows = await tx.fetch_all(_SQL["list_entries"], _bounds(namespace, prefix))
            return [_state_entry(row) for row in await _opened(self._sealing, tx.fetch_all, namespace, rows)]

        return await self._store.read(unit)

    async def watch(
        self, prefix: str, *, after: int | None = None, **owner: Unpack[Owner]
    ) -> AsyncIterator[StateEntry]:
        """Every change of the keys that begin with `prefix`, as it happens, for ever.

        Begins now, or after a journal position. Each entry is the state at the time of reading:
        of several quick changes to a key the last one is sure to be seen.
        """
        start = await self._journal.position() if after is None else after

        async def resolve(tx: Transaction) -> str:
            return (await self._resolve(tx, owner, [prefix], "read")).namespace(prefix)

        namespace = await self._store.read(resolve)
        wanted = match(namespace=_journal_namespace(namespace))
        async for change in self._journal.changes(start, True, wanted):  # pragma: no branch - it never ends
            for key in change.payload.get("keys", ()):
                if key.startswith(prefix) and scope_of(key) == scope_of(prefix):
                    rows = await self._store.fetch(_SQL["get_entry_or_trace"], {"namespace": namespace, "key": key})
                    for row in await _opened(self._sealing, self._store.fetch, namespace, rows):
                        yield _state_entry(row)

    async def _resolve(self, tx: Transaction, owner: Owner, keys: Sequence[str], level: Level) -> Owners:
        """Whose state it is, having checked that there is such a session and that it may be done."""
        owners = _checked(owner)
        if owners.session_id is not None:
            owners = await self._resolve_session(tx, owners.session_id, keys, level)
        if self._access.principal:
            allow(self._access, {owners.namespace(key) for key in keys}, level)
        return owners

    async def _resolve_session(self, tx: Transaction, session_id: str, keys: Sequence[str], level: Level) -> Owners:
        """A change of a session's own state is a change of the session, and only while it goes on."""
        changes = level != "read" and any(scope_of(key) in ("temp", "session") for key in keys)
        access = self._access.sessions(level)
        query = _SESSIONS["get_session"].where(access, self._store.dialect.row_lock if changes else "")
        found = await tx.fetch_one(query, {"id": session_id, **params_of(access)})
        if found is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")
        session = SessionRow(*found)
        if changes:
            if session.status in _OVER:
                raise InvalidTransition(f"session {session_id!r} is {session.status}; its state can no longer change")
            await touch(tx, session, self._clock.now())
        return session.owners

    async def _prepare(self, owner: Owner, keys: Iterable[str]) -> None:
        """Have the data keys at hand, if anything is encrypted, before a transaction is begun."""
        if self._sealing.is_active:
            owners = _checked(owner)
            if owners.session_id is not None:
                await self._sealing.prepare_session(owners.session_id)
                return
            namespaces = {owners.namespace(key) for key in keys}
            allow(self._access, namespaces, "write")
            await self._sealing.prepare(list(namespaces))

    def _vault(self, owners: Owners) -> Vault | None:
        return Vault(self._sealing, owners, self._store.dialect.row_lock) if self._sealing.is_active else None

    async def _merged(self, tx: Transaction, owners: Owners, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Write rows, each over what its key has; the keys' new versions."""
        versions: dict[str, int] = {}
        if (vault := self._vault(owners)) is not None:
            for row in rows:
                if (version := await vault.put(tx, row)) is not None:
                    versions[row["key"]] = version
            rows = [row for row in rows if row["key"] not in versions]
        written = await tx.fetch_each(_SQL["merge_entry_returning"], rows)
        versions |= {row["key"]: version for row, (version,) in zip(rows, written, strict=True)}
        return versions

    async def _replace(self, tx: Transaction, owners: Owners, key: str, value: str, expected: int) -> int | None:
        """Write a value if the key has the version, or none if that is 0; its new version, or None if it has not."""
        row: dict[str, Any] = {
            "namespace": owners.namespace(key), "key": key, "value": value, "expected": expected,
            "now": self._clock.now(),
        }  # fmt: skip
        if (vault := self._vault(owners)) is not None:
            if not expected and (made := await vault.put(tx, row, create=True)) is not None:
                return made or None
            row["value"] = await vault.sealed(tx, row, expected + 1)
        written = await tx.fetch_one(_SQL["replace_entry" if expected else "create_entry"], row)
        return written[0] if written else None

    async def _record(
        self,
        tx: Transaction,
        owners: Owners,
        operation: str,
        key: str,
        version: int,
        actor: str | None,
        task_id: str | None,
    ) -> int:
        origin = self._origin(owners, actor, task_id)
        await record(tx, [_entry(origin, owners.namespace(key), operation, [key], version)])
        return version

    async def _conflict(self, tx: Transaction, namespace: str, key: str, expected: int) -> ConflictError:
        row = await tx.fetch_one(_SQL["get_entry"], {"namespace": namespace, "key": key})
        present = f"version {row[2]}" if row else "not set"
        return ConflictError(f"state {key!r} is {present}, not version {expected}: read it again and retry")

    def _origin(self, owners: Owners, actor: str | None, task_id: str | None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, task_id, owners.user_id, owners.session_id)

    def _check(self, key: str) -> None:
        check_key("a state key", key, self._settings.max_key_length)


def _checked(owner: Owner) -> Owners:
    names = ("session_id", "app_name", "user_id", "project_id")
    unknown = owner.keys() - set(names)
    if unknown:
        raise InvalidInput(f"unknown argument {', '.join(sorted(unknown))}; an owner has {', '.join(names)}")
    values = (owner.get(name) for name in names)
    return Owners(*(v if v is None else check_identifier(n, v) for n, v in zip(names, values, strict=True)))


def _bounds(namespace: str, prefix: str) -> dict[str, Any]:
    """The range of keys that begin with `prefix`: no character sorts after U+10FFFF."""
    return {"namespace": namespace, "first": prefix, "end": f"{prefix}\U0010ffff"}


def _state_entry(row: Row) -> StateEntry:
    key, value, version, updated_at = row
    return StateEntry(key, None if value is None else decode(value), version, moment(updated_at), value is None)
