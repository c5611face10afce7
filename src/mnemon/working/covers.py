"""Working memory that is encrypted: in the database, and as it is in every copy of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.ports import Raced, Transaction
from mnemon.sql import load
from mnemon.state import SessionRow
from mnemon.working.rows import ItemRow, PadRow

_SQL = load("working")
_ITEM = Layout("working_items", ItemRow._fields)
_PAD = Layout("scratchpads", PadRow._fields)


class Covers:
    """Seals what belongs to a session that is encrypted, and opens what was sealed."""

    def __init__(self, sealing: Sealing | None, lock: str) -> None:
        self.sealing = sealing or Sealing()
        self._hold = _SQL["hold_pad"].where([], lock)

    async def prepare(self, session_id: str) -> None:
        """Have the session's key at hand before a transaction is begun."""
        await self.sealing.prepare_session(session_id)

    async def seal_items(
        self, tx: Transaction, session: SessionRow, buffer: str, rows: Sequence[ItemRow]
    ) -> Sequence[ItemRow]:
        """Items as they are to be written and copied."""
        if (scope := self._scope(session)) is None:
            return rows
        named = [{**row._asdict(), "session_id": session.id, "buffer": buffer} for row in rows]
        sealed = await self.sealing.sealed_in(tx, scope, _ITEM, named)
        return [row._replace(body=each["body"]) for row, each in zip(rows, sealed, strict=True)]

    async def open_items(
        self, fetch: Fetch, session_id: str, buffer: str, rows: Sequence[ItemRow]
    ) -> Sequence[ItemRow]:
        """Items as they were appended."""
        opened = await self.sealing.opened(fetch, _ITEM, rows, session_id=session_id, buffer=buffer)
        return [ItemRow(*row) for row in opened]

    async def next_pad(self, tx: Transaction, session: SessionRow, params: Mapping[str, Any]) -> tuple[str, int | None]:
        """The value of a scratchpad as it is to be written, and the version that it is to have if it is encrypted."""
        scope = self._scope(session)
        if scope is None:
            return params["value"], None
        before = await tx.fetch_one(self._hold, params)
        version = before[0] + 1 if before else 1
        [sealed] = await self.sealing.sealed_in(tx, scope, _PAD, [{**params, "version": version}])
        return sealed["value"], version

    async def open_pads(self, fetch: Fetch, session_id: str, rows: Sequence[PadRow]) -> Sequence[PadRow]:
        """Scratchpads as they were set."""
        return [PadRow(*row) for row in await self.sealing.opened(fetch, _PAD, rows, session_id=session_id)]

    def _scope(self, session: SessionRow) -> str | None:
        return self.sealing.session_scope(session.id, session.app_name, session.user_id, session.project_id)


def require_version(written: int, foretold: int | None) -> None:
    """What is encrypted is bound to the version that was foretold; if it has another, all is done again."""
    if foretold is not None and written != foretold:
        raise Raced
