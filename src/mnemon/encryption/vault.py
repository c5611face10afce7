"""State that is encrypted: each value is bound to its version, which has to be known before it is written."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from mnemon.encryption.sealing import Layout, Sealing
from mnemon.ports import Raced, Transaction
from mnemon.sql import load

_SQL = load("state")
_OWN = ("temp:", "session:")

Owned: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Session, app, user and project, as far as they are known."""
STATE = Layout("state", ("key", "value", "version", "updated_at"))
"""How entries are read."""


class Vault:
    """Encrypts the state that some owners have, as far as it is to be."""

    def __init__(self, sealing: Sealing, owners: Owned, lock: str) -> None:
        self._sealing = sealing
        self._owners = owners
        self._hold = _SQL["hold_entry"].where([], lock)

    async def put(self, tx: Transaction, row: Mapping[str, Any], *, create: bool = False) -> int | None:
        """Write an entry over what its key has; its new version. With `create`, only if it has no value: 0 otherwise.

        None, and nothing is written, if it is not encrypted. What is encrypted is bound to its version, which has to
        be known before.
        """
        scope = self._scope(row["namespace"])
        if scope is None:
            return None
        before, is_set = await tx.fetch_one(self._hold, row) or (0, False)
        if create and is_set:
            return 0
        value = await self._seal(tx, scope, row, before + 1)
        written = await tx.fetch_one(_SQL["put_entry"], {**row, "value": value, "before": before})
        if written != (before + 1,):
            raise Raced  # another writer made or cleared it between the look and the write
        return before + 1

    async def sealed(self, tx: Transaction, row: Mapping[str, Any], version: int) -> str:
        """The row's value as it is to be written, as a version of the key."""
        scope = self._scope(row["namespace"])
        return row["value"] if scope is None else await self._seal(tx, scope, row, version)

    async def _seal(self, tx: Transaction, scope: str, row: Mapping[str, Any], version: int) -> str:
        [sealed] = await self._sealing.sealed_in(tx, scope, STATE, [{**row, "version": version}])
        return sealed["value"]

    def _scope(self, namespace: str) -> str | None:
        """A session's own state is encrypted if anything of the session is."""
        session_id, app_name, user_id, project_id = self._owners
        if namespace.startswith(_OWN) and session_id and app_name and user_id:
            found = self._sealing.session_scope(session_id, app_name, user_id, project_id)
            return found or self._sealing.covering(namespace)
        return self._sealing.covering(namespace)
