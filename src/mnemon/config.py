"""Where settings come from: arguments, then `MNEMON_*` variables, then `mnemon.toml` or `mnemon.yaml`."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from mnemon.errors import InvalidSettings
from mnemon.settings import Settings

_FILES = ("mnemon.toml", "mnemon.yaml", "mnemon.yml")
_PREFIX = "MNEMON_"
_SURE = {"url": str, "background": bool, "create": bool}  # settings of which every value of the type can be used


def load_settings(url: str | None, given: dict[str, Any]) -> Settings:
    """The settings in force. An argument wins over the environment, and that over a file.

    A file is looked for in the working directory; `MNEMON_CONFIG` names another.
    """
    arguments: dict[str, Any] = given if url is None else {**given, "url": url}
    known = {field.name for field in fields(Settings)}
    unknown = arguments.keys() - known
    if unknown:
        raise InvalidSettings(f"unknown setting {', '.join(sorted(unknown))}; see mnemon.settings.Settings")
    file = settings_file()
    named = {name.upper().removeprefix(_PREFIX).lower() for name in os.environ if name.upper().startswith(_PREFIX)}
    strange = named - known - {"config"}
    if strange:
        names = ", ".join(sorted(f"{_PREFIX}{name.upper()}" for name in strange))
        raise InvalidSettings(f"{names} in the environment is not a setting; see mnemon.settings.Settings")
    if file is None and not named and all(isinstance(arguments[name], _SURE.get(name, ())) for name in arguments):
        return Settings(**arguments)  # nothing to validate, so the validator need not be loaded
    return _validated(arguments, file)


def settings_file() -> Path | None:
    """The file that has settings, if there is one."""
    named = os.environ.get(f"{_PREFIX}CONFIG")
    if named:
        if not Path(named).is_file():
            raise InvalidSettings(f"MNEMON_CONFIG names {named}, which is not a file")
        return Path(named)
    return next((Path(name) for name in _FILES if Path(name).is_file()), None)


def _validated(arguments: dict[str, Any], file: Path | None) -> Settings:
    from mnemon.validation import read_sources  # noqa: PLC0415 - slow to import, seldom needed

    return Settings(**read_sources(arguments, file))
