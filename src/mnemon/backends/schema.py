"""Which schema this program works with, and what to do about a database that has another."""

from collections.abc import Callable

from mnemon.errors import SchemaTooNew, SchemaTooOld
from mnemon.settings import Settings

HEAD = "0003"
VERSION_TABLE = "mnemon_schema"


def bring_up_to_date(found: str, where: str, settings: Settings, migrate: Callable[[], None]) -> None:
    """Migrate an older database if the settings allow it; refuse a newer one untouched."""
    if found > HEAD:
        raise SchemaTooNew(
            f"{where} has schema {found}, made by a newer Mnemon; this one knows up to {HEAD}. "
            "Nothing was changed: upgrade the package to open it."
        )
    if found < HEAD:
        if not settings.migrate:
            raise SchemaTooOld(
                f"{where} has schema {found}, this program needs {HEAD}. Nothing was changed: "
                "back it up, then open it with migrate=True."
            )
        migrate()
