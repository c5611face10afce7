"""The rows of working memory, and how they stand in a copy outside the database."""

from typing import NamedTuple

import orjson

from mnemon.clock import moment, moment_or_none
from mnemon.model import Scratchpad, WorkingItem
from mnemon.values import decode


class ItemRow(NamedTuple):
    """A row of `working_items`, as every query selects it."""

    sequence: int
    body: str
    tokens: int
    created_by: str | None
    created_at: int
    expires_at: int | None

    @property
    def copied(self) -> tuple[int, str]:
        return self.sequence, orjson.dumps(tuple(self)).decode()

    @property
    def item(self) -> WorkingItem:
        expires = moment_or_none(self.expires_at)
        created = moment(self.created_at)
        return WorkingItem(self.sequence, decode(self.body), self.tokens, self.created_by, created, expires)


class PadRow(NamedTuple):
    """A row of `scratchpads`; one that was deleted has no value."""

    name: str
    value: str | None
    version: int
    updated_by: str | None
    updated_at: int
    expires_at: int | None

    @property
    def copied(self) -> tuple[int, str]:
        return 1, orjson.dumps(tuple(self)).decode()

    def pad(self, now: int) -> Scratchpad | None:
        """None if it was deleted or has expired."""
        if self.value is None or (self.expires_at is not None and self.expires_at <= now):
            return None
        expires = moment_or_none(self.expires_at)
        updated = moment(self.updated_at)
        return Scratchpad(self.name, decode(self.value), self.version, self.updated_by, updated, expires)


def is_live(row: ItemRow, now: int) -> bool:
    return row.expires_at is None or row.expires_at > now
