"""Which namespaces are encrypted, and the rows of tables sealed and opened accordingly."""

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemon.encryption.envelope import Place, is_sealed, key_id_of
from mnemon.encryption.keys import DataKeys, Fetch
from mnemon.encryption.tables import TABLES
from mnemon.errors import InvalidInput, InvalidSettings, KeyUnavailable
from mnemon.namespaces import covers
from mnemon.ports import Row, Transaction
from mnemon.sql import load

_SQL = load("encryption")
_REMEDY = "set encryption_keys or encryption_key_file, or pass a key_provider"
_OF_SESSIONS = ("session", "temp")
_KNOWN = 50_000  # sessions that are remembered to be encrypted


@dataclass(frozen=True, slots=True)
class Layout:
    """A table's columns, in the order in which its rows are read; `sealed` are those that may be encrypted."""

    table: str
    columns: Sequence[str]
    sealed: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.sealed:
            object.__setattr__(self, "sealed", TABLES[self.table].sealed)

    def place(self, row: Mapping[str, Any], column: str) -> Place:
        return TABLES[self.table].place(row, column)

    def sealed_in(self, rows: Sequence[Row]) -> dict[int, list[str]]:
        """The sealed columns of those rows that have any, by the rows' numbers."""
        found: dict[int, list[str]] = {}
        for column in self.sealed:
            at = self.columns.index(column)
            for number, row in enumerate(rows):
                if row[at] is not None and is_sealed(row[at]):
                    found.setdefault(number, []).append(column)
        return found


def check_policy(prefixes: Sequence[str], keys: object | None) -> None:
    """Refuse to encrypt without any key."""
    if prefixes and keys is None:
        raise InvalidSettings(f"encrypted_namespaces needs a master key: {_REMEDY}")


class Sealing:
    """Seals rows of the namespaces below `prefixes`, and opens whatever is sealed. Without keys it opens nothing.

    What shares a data key is a scope: a user, a project…; or all of a longer prefix.
    """

    def __init__(
        self, prefixes: Sequence[str] = (), keys: DataKeys | None = None, *, keeps_vectors: bool = False
    ) -> None:
        check_policy(prefixes, keys)
        self._prefixes = prefixes
        self._keys = keys
        self.is_active = bool(prefixes)
        """Whether anything that is written is encrypted at all."""
        self.keeps_vectors = keeps_vectors
        """Whether encrypted memories have vectors, which tell what they are about."""
        self._reaches_sessions = any(prefix.partition(":")[0] not in _OF_SESSIONS for prefix in prefixes)
        self._of_sessions: dict[str, str] = {}
        self._seen: set[str] = set()

    @property
    def keys(self) -> DataKeys | None:
        """The data keys; None if there is no master key."""
        return self._keys

    # -- what is encrypted

    def seals(self, namespace: str) -> bool:
        """Whether what is written there is encrypted.

        Of a session it is known only after `prepare`, or after something of it was sealed.
        """
        if not self.is_active:
            return False
        root, session_id = _session_in(namespace)
        return self.covering(namespace) is not None or (root and session_id in self._of_sessions)

    def hides_vectors(self, namespace: str) -> bool:
        """Whether what is written there has no vectors, as they would tell what it says."""
        return not self.keeps_vectors and self.seals(namespace)

    def refuse_filter(self, prefixes: Iterable[str], where: object) -> None:
        """`InvalidInput` if metadata is asked for where all of it is encrypted: nothing could be found."""
        if where is not None and self.is_active and all(self.covering(prefix) is not None for prefix in prefixes):
            raise InvalidInput(
                f"the metadata in {', '.join(map(repr, prefixes))} is encrypted, so that no filter can look into it; "
                "ask without one, and look at what you get"
            )

    def covering(self, namespace: str) -> str | None:
        """The scope of what lies in the namespace, by its name alone; None if that is not encrypted."""
        return self.scope(namespace) if any(covers(prefix, namespace) for prefix in self._prefixes) else None

    def scope(self, namespace: str) -> str:
        """The part of an encrypted namespace that shares a data key."""
        longest = max((each for each in self._prefixes if covers(each, namespace)), key=len)
        first_two = ":".join(namespace.split(":")[:2])
        return longest if covers(first_two, longest) else first_two

    def session_scope(self, session_id: str, app_name: str, user_id: str, project_id: str | None) -> str | None:
        """The scope of what belongs to a session; None if that is not encrypted.

        It is if anything is that its log may tell of: its own state, or that of its user, app or project.
        """
        if not self.is_active:
            return None
        names = [f"user:{user_id}:{app_name}", f"session:{session_id}", f"app:{app_name}"]
        if project_id is not None:
            names.append(f"project:{project_id}")
        return next((scope for name in names if (scope := self.covering(name)) is not None), None)

    async def scope_at(self, fetch: Fetch, namespace: str) -> str | None:
        """The scope of what lies in the namespace; what lies in a session's is encrypted if the session is."""
        if not self.is_active:
            return None
        own = self.covering(namespace)
        is_of_session, session_id = _session_in(namespace)
        if not is_of_session or not self._reaches_sessions:
            return own
        rows = await fetch(_SQL["owners_of_session"], {"id": session_id})
        scope = self.session_scope(*rows[0]) if rows else await self._scope_left(fetch, session_id, namespace)
        if scope is not None:
            self._note(session_id, scope)
        return scope or own

    async def scope_of(self, fetch: Fetch, sealed: str | None) -> str | None:
        """The scope of whatever a text was sealed with; None if it is not sealed."""
        if sealed is None or not is_sealed(sealed):
            return None
        rows = await fetch(_SQL["scope_of_key"], {"id": key_id_of(sealed)})
        return rows[0][0] if rows else None

    # -- before a transaction

    async def prepare(self, namespaces: Sequence[str]) -> None:
        """Have the keys at hand that seal what is written there. Not for inside a transaction."""
        if self._keys is not None and self.is_active:
            found = {await self.scope_at(self._keys.fetch, each) for each in sorted(set(namespaces))}
            await self.prepare_scopes(found)

    async def prepare_scopes(self, scopes: "set[str | None]") -> None:
        """The same, for scopes; None stands for what is not encrypted."""
        if self._keys is not None:
            for scope in sorted(each for each in scopes if each is not None):
                await self._keys.prepare(scope)

    async def prepare_session(self, session_id: str) -> None:
        """The same, for what belongs to a session; nothing if there is no such session."""
        if self._keys is None or not self.is_active or not isinstance(session_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return  # what is no name is refused later
        if session_id not in self._seen:  # whose a session is stays the same; if not, its key is fetched later
            if len(self._seen) >= _KNOWN:
                self._seen.clear()
            self._seen.add(session_id)
            for owners in await self._keys.fetch(_SQL["owners_of_session"], {"id": session_id}):
                await self.prepare_owners(*owners)

    async def prepare_sessions(self, namespaces: Iterable[object]) -> None:
        """The same, for the sessions among namespaces whatever; then `seals` knows of them."""
        for namespace in namespaces if self._reaches_sessions else ():
            if _session_in(str(namespace))[0]:
                await self.prepare([str(namespace)])

    async def prepare_owners(self, session_id: str, app_name: str, user_id: str, project_id: str | None) -> None:
        """The same, for what such a session would have."""
        scope = self.session_scope(session_id, app_name, user_id, project_id)
        if scope is not None:
            self._note(session_id, scope)
            await self.prepare_scopes({scope})

    async def digesting(self, namespace: str) -> Callable[[str], str] | None:
        """What makes digests of texts there, which tell nothing without the key; None if it is not encrypted.

        Not for inside a transaction. After a rotation the digests are others.
        """
        scope = None if self._keys is None else await self.scope_at(self._keys.fetch, namespace)
        if self._keys is None or scope is None:
            return None
        secret = hmac.digest((await self._keys.at_hand(scope)).secret, b"mnemon digests 1", "sha256")
        return lambda text: hmac.digest(secret, text.encode(), "sha256").hex()

    # -- rows

    async def sealed(self, tx: Transaction, layout: Layout, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row as it is to be written, with the version that it is to have; its own namespace says whether."""
        if not self.is_active:
            return row
        [found] = await self.sealed_in(tx, await self.scope_at(tx.fetch_all, row["namespace"]), layout, [row])
        return found

    async def sealed_in(
        self, tx: Transaction, scope: str | None, layout: Layout, rows: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Rows as they are to be written in a scope; without one as they are."""
        if scope is None or self._keys is None:
            return rows
        key = await self._keys.current(tx, scope)
        return [
            {
                **row,
                **{
                    column: key.seal(row[column], layout.place(row, column))
                    for column in layout.sealed
                    if row[column] is not None
                },
            }
            for row in rows
        ]

    async def opened(self, fetch: Fetch, layout: Layout, rows: Sequence[Row], **given: Any) -> Sequence[Row]:
        """Rows as they were before they were sealed. `given` are columns that they were not read with."""
        sealed = layout.sealed_in(rows)
        if not sealed:
            return rows
        if self._keys is None:
            raise KeyUnavailable(f"{layout.table} has encrypted values, and there is no master key: {_REMEDY}")
        named = {number: dict(zip(layout.columns, rows[number], strict=True)) for number in sealed}
        ids = {key_id_of(named[number][column]) for number, columns in sealed.items() for column in columns}
        keys = await self._keys.find(fetch, ids)
        for number, columns in sealed.items():
            row = named[number]
            for column in columns:
                row[column] = keys[key_id_of(row[column])].open(row[column], layout.place({**given, **row}, column))
        return [tuple(named[number].values()) if number in named else row for number, row in enumerate(rows)]

    # -- sessions

    async def _scope_left(self, fetch: Fetch, session_id: str, namespace: str) -> str | None:
        """The scope of what is left of a session that is gone: that of what is remembered of it."""
        for place in (f"session:{session_id}", namespace):
            for (value,) in await fetch(_SQL["value_in_namespace"], {"namespace": place}):
                if (scope := await self.scope_of(fetch, value)) is not None:
                    return scope
        return None

    def _note(self, session_id: str, scope: str) -> None:
        if len(self._of_sessions) >= _KNOWN:
            del self._of_sessions[next(iter(self._of_sessions))]
        self._of_sessions[session_id] = scope


def _session_in(namespace: str) -> tuple[bool, str]:
    """Whether a namespace is a session's, and of which."""
    root, _, rest = namespace.partition(":")
    return root in _OF_SESSIONS, rest.partition(":")[0]
