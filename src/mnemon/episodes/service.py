"""Episodes: stored as they are told, queried, tried again if consolidation failed, deleted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from mnemon import journal
from mnemon.access import Access, under
from mnemon.clock import Clock
from mnemon.encryption.sealing import Sealing
from mnemon.episodes import covers
from mnemon.episodes.drafts import check_kind, check_status, draft_row
from mnemon.episodes.erasure import Archives, erase
from mnemon.episodes.rows import SQL, EpisodeRow, entry_of, episode_of
from mnemon.errors import EpisodeNotFound, InvalidInput, InvalidTransition, SessionNotFound
from mnemon.journal import Origin, origin_of
from mnemon.model import Episode, EpisodeKind, EpisodeStatus, Level, Offer, Page
from mnemon.namespaces import EVERYTHING, check_identifier, check_namespace, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Fragment, equal, load, params_of
from mnemon.state import SessionRow

_SESSIONS = load("sessions")
_LATEST = 2**63 - 1
_BATCH = 100

SUMMARIES, FACTS = "episodes", "facts"
"""Below an episode's namespace: where its summary is remembered, and where its facts are."""


class EpisodeService:
    """Keeps what happened until consolidation has made memories of it, and after. A namespace's grants open its own."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        archives: Callable[[], Archives],
        sealing: Sealing | None = None,
    ) -> None:
        self._archives = archives
        self._sealing = sealing or Sealing()
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access

    async def store(
        self,
        entries: Iterable[Any],
        *,
        kind: str = EpisodeKind.CONVERSATION,
        namespace: str | None = None,
        session_id: str | None = None,
        title: str = "",
        participants: Iterable[str] | None = None,
        offers: Iterable[Offer | Mapping[str, Any]] | None = None,
        outcome: Any = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Episode:
        """Store what happened: entries are values that JSON can carry, or `EpisodeEntry` with who and when.

        Without a namespace it belongs to the session's user. It is `pending` until consolidation has made a summary
        and facts of it.
        """
        if session_id is not None:
            check_identifier("session_id", session_id)
        elif namespace is None:
            raise InvalidInput("an episode needs a namespace, or a session to whose user it belongs")
        if namespace is not None:
            self._check_place(namespace)
        told: dict[str, Any] = {
            "kind": kind, "title": title, "participants": participants, "offers": offers, "outcome": outcome,
            "started_at": started_at, "ended_at": ended_at, "metadata": metadata,
        }  # fmt: skip
        origin = origin_of(self._access, self._clock.now(), actor, task_id)
        limit = self._settings.max_value_bytes
        row = draft_row(origin, limit, namespace=namespace or "", entries=entries, **told)

        async def unit(tx: Transaction) -> EpisodeRow:
            owner, place = origin, row.namespace
            if session_id is not None:
                session = await self._session(tx, session_id)
                owner = origin._replace(user_id=session.user_id, session_id=session_id)
                place = covers.place_of(session, place, self._sealing)
            self._access.require(place, "write")
            return await add(tx, owner, row._replace(namespace=place, session_id=session_id), self._sealing)

        return episode_of(await self._store.write(unit))

    async def get(self, episode_id: int) -> Episode | None:
        """The episode, or None if there is none."""
        conditions = [self._open("read")]
        params = {"id": _check_id(episode_id), **params_of(conditions)}
        rows = await self._store.fetch(SQL["get_episode"].where(conditions), params)
        return episode_of((await covers.opened(self._store.fetch, rows, self._sealing))[0]) if rows else None

    async def list(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        namespace: str = EVERYTHING,
        session_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Episode]:
        """Episodes at or below a namespace, the newest first, a page at a time."""
        wanted = None if status is None else str(check_status(status))
        chosen = None if kind is None else str(check_kind(kind))
        session = None if session_id is None else check_identifier("session_id", session_id)
        below = self._open("read", namespace)
        conditions = [*equal(status=wanted, kind=chosen, session_id=session), below]
        (before,) = decode_cursor(cursor, "episodes", (_LATEST,))
        params = {**params_of(conditions), "before": before, "limit": check_limit(limit)}
        query = SQL["list_below" if below.params and session is None and wanted is None else "list_episodes"]
        found = await self._store.fetch(query.where(conditions), params)
        rows = await covers.opened(self._store.fetch, found, self._sealing)
        more = encode_cursor("episodes", rows[-1].id) if len(rows) == limit else None
        return Page(tuple(episode_of(row) for row in rows), more)

    async def counts(self, namespace: str = EVERYTHING) -> dict[EpisodeStatus, int]:
        """How many episodes at or below a namespace have each status."""
        below = self._open("read", namespace)
        rows = dict(await self._store.fetch(SQL["count_episodes"].where([below]), below.params))
        return {status: rows.get(str(status), 0) for status in EpisodeStatus}

    async def retry(
        self,
        episode_id: int | None = None,
        *,
        namespace: str = EVERYTHING,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Let a failed episode be consolidated again, or all failed ones at or below a namespace; how many."""
        origin = origin_of(self._access, self._clock.now(), actor, task_id)
        if episode_id is not None:
            return await self._store.write(lambda tx: self._retry_one(tx, origin, _check_id(episode_id)))
        below = self._open("write", namespace)
        after, done = 0, 0
        while True:
            params = {**below.params, "after": after, "limit": _BATCH}
            rows = await self._store.write(lambda tx, params=params: self._retry(tx, origin, below, params))
            done += len(rows)
            if len(rows) < _BATCH:
                return done
            after = rows[-1].id

    async def delete(self, episode_id: int, *, actor: str | None = None, task_id: str | None = None) -> None:
        """Delete an episode, whatever its status. What was remembered of it stays, as memories."""
        origin = origin_of(self._access, self._clock.now(), actor, task_id)

        async def unit(tx: Transaction) -> None:
            row = await self._locked(tx, _check_id(episode_id))
            await tx.execute(SQL["delete_episode"], {"id": row.id})
            await journal.record(tx, [entry_of(_of(origin, row), "delete", row.namespace, row.id)])

        await self._store.write(unit)

    async def erase(self, namespace: str, *, actor: str | None = None, task_id: str | None = None) -> int:
        """Erase every episode at or below the namespace for good, from archives and the files too; how many.

        A worker that is at one of them writes nothing of it any more. What was remembered of them before stays, as
        memories: `forget` erases both. `StoreUnavailable` if the database is rid of them and an archive could not be
        removed; call it again then.
        """
        prefix = check_namespace(namespace, self._settings.max_namespace_length)
        self._access.require(prefix, "admin")
        origin_of(self._access, 0, actor, task_id)  # so that what cannot be is refused before anything is done

        def by() -> Origin:
            return origin_of(self._access, self._clock.now(), actor, task_id)

        return await erase(self._store, self._archives(), prefix, by)

    # -- inside a transaction

    async def _session(self, tx: Transaction, session_id: str) -> SessionRow:
        conditions = self._access.sessions("write")
        params = {"id": session_id, **params_of(conditions)}
        row = await tx.fetch_one(_SESSIONS["get_session"].where(conditions), params)
        if row is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")
        return SessionRow(*row)

    async def _locked(self, tx: Transaction, episode_id: int) -> EpisodeRow:
        conditions = [self._open("write")]
        query = SQL["get_episode"].where(conditions, self._store.dialect.row_lock)
        row = await tx.fetch_one(query, {"id": episode_id, **params_of(conditions)})
        if row is None:
            raise EpisodeNotFound(f"there is no episode {episode_id!r}")
        return EpisodeRow(*row)

    async def _retry_one(self, tx: Transaction, origin: Origin, episode_id: int) -> int:
        row = await self._locked(tx, episode_id)
        if row.status != EpisodeStatus.FAILED:
            raise InvalidTransition(f"episode {episode_id} is {row.status}; only a failed one is tried again")
        await self._revive(tx, origin, row)
        return 1

    async def _retry(
        self, tx: Transaction, origin: Origin, below: Fragment, params: Mapping[str, Any]
    ) -> Sequence[EpisodeRow]:
        query = SQL["failed_episodes"].where([below], self._store.dialect.row_lock)
        rows = [EpisodeRow(*row) for row in await tx.fetch_all(query, params)]
        for row in rows:
            await self._revive(tx, origin, row)
        return rows

    async def _revive(self, tx: Transaction, origin: Origin, row: EpisodeRow) -> None:
        await tx.execute(SQL["retry_episode"], {"id": row.id, "now": origin.now})
        await journal.record(tx, [entry_of(_of(origin, row), "retry", row.namespace, row.id)])

    # -- checking

    def _open(self, level: Level, namespace: str = EVERYTHING) -> Fragment:
        prefix = check_prefix(namespace, self._settings.max_namespace_length)
        return under("namespace", self._access.within(prefix, level), "within")

    def _check_place(self, namespace: str) -> None:
        longest = self._settings.max_namespace_length
        check_namespace(namespace, longest - len(SUMMARIES) - 1)  # what is remembered of it goes below


async def add(tx: Transaction, origin: Origin, row: EpisodeRow, sealing: Sealing) -> EpisodeRow:
    """Write a new episode and its journal entry; the row with its id."""
    number = await covers.insert(tx, row, sealing)
    told = {"kind": row.kind, "status": row.status}
    await journal.record(tx, [entry_of(origin, "store", row.namespace, number, **told)])
    return row._replace(id=number)


def _of(origin: Origin, row: EpisodeRow) -> Origin:
    return origin._replace(session_id=row.session_id)


def _check_id(episode_id: object) -> int:
    if not isinstance(episode_id, int) or isinstance(episode_id, bool) or not 0 < episode_id < 2**63:
        raise InvalidInput(f"an episode's id is a whole number above 0, not {episode_id!r:.80}")
    return episode_id
