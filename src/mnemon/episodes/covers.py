"""Episodes that are encrypted: all that was told, bound to the episode's id."""

from collections.abc import Sequence

from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.episodes.rows import SQL, EpisodeRow
from mnemon.errors import InvalidInput, KeyUnavailable
from mnemon.ports import Row, Transaction
from mnemon.sql import Fragment
from mnemon.state import SessionRow

_LAYOUT = Layout("episodes", EpisodeRow._fields)
_ERROR = Layout("episodes", EpisodeRow._fields, ("error",))
_BLANK = {"title": "", "body": "[]", "participants": "[]", "offers": "[]", "outcome": None, "metadata": "{}"}
_PLAIN = Fragment("SUBSTR(body, 1, 12) <> '\"\\u0073ealed'")


async def insert(tx: Transaction, row: EpisodeRow, sealing: Sealing) -> int:
    """Write an episode; its id. What is encrypted is bound to that, so it follows when the id is known."""
    scope = await sealing.scope_at(tx.fetch_all, row.namespace)
    if scope is None and row.session_id is not None:
        scope = await sealing.scope_at(tx.fetch_all, f"session:{row.session_id}")
    if scope is None:
        [(number,)] = await tx.fetch_each(SQL["insert_episode"], [row._asdict()])
        return number
    [(number,)] = await tx.fetch_each(SQL["insert_episode"], [{**row._asdict(), **_BLANK}])
    written = await sealing.sealed_in(tx, scope, _LAYOUT, [row._replace(id=number)._asdict()])
    await tx.execute_many(SQL["fill_episode"], written)
    return number


async def opened(fetch: Fetch, rows: Sequence[Row], sealing: Sealing) -> list[EpisodeRow]:
    """Episodes as they were told."""
    return [EpisodeRow(*row) for row in await sealing.opened(fetch, _LAYOUT, rows)]


async def sealed_error(tx: Transaction, row: EpisodeRow, sealing: Sealing) -> str | None:
    """The error of an episode as it is to be written: it may have the episode's words, so it is encrypted as those."""
    if row.error is None:
        return None
    found = await tx.fetch_one(SQL["get_episode"].where([]), {"id": row.id})
    scope = await sealing.scope_of(tx.fetch_all, EpisodeRow(*found).body) if found else None
    try:
        [sealed] = await sealing.sealed_in(tx, scope, _ERROR, [row._asdict()])
    except KeyUnavailable:  # only of which kind it is can be told to everybody
        return row.error.partition(":")[0]
    return sealed["error"]


def readable(sealing: Sealing) -> list[Fragment]:
    """What an episode must be like for this process to work on it: without any key, one that is not encrypted."""
    return [_PLAIN] if sealing.keys is None else []


def place_of(session: SessionRow, given: str, sealing: Sealing) -> str:
    """Where an episode of the session belongs, and what is remembered of it: as given, or to the session's user.

    What is made of an encrypted session may only go where that is encrypted, too.
    """
    theirs, own = f"user:{session.user_id}", f"session:{session.id}"
    scope = sealing.session_scope(session.id, session.app_name, session.user_id, session.project_id)
    if scope is None:
        return given or theirs
    if given not in ("", own) and sealing.covering(given) is None:
        raise InvalidInput(
            f"session {session.id!r} is encrypted and {given!r} is not; name an encrypted namespace, or none"
        )
    return given or (theirs if sealing.covering(theirs) is not None else own)
