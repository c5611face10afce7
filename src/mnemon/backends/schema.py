"""Which schema this program works with, and what to do about a database that has another."""

from collections.abc import Callable

from mnemon.errors import SchemaTooNew, SchemaTooOld, StoreUnavailable
from mnemon.settings import Settings

HEAD = "0005"
VERSION_TABLE = "mnemon_schema"


def no_database(where: object) -> StoreUnavailable:
    """The error for a database that is not there, where the setting `create` says that none is to be made."""
    return StoreUnavailable(
        f"there is no database at {where}: name another, or make one, as `mnemon remember` or opening it with "
        "create=True does"
    )


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
