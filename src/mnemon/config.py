"""Where settings come from: arguments, then `MNEMON_*` variables, then `mnemon.toml` or `mnemon.yaml`."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from mnemon.errors import InvalidSettings
from mnemon.settings import Settings

_FILES = ("mnemon.toml", "mnemon.yaml", "mnemon.yml")
_PREFIX = "MNEMON_"


def load_settings(url: str | None, given: dict[str, Any]) -> Settings:
    """The settings in force. An argument wins over the environment, and that over a file.

    A file is looked for in the working directory; `MNEMON_CONFIG` names another.
    """
    arguments: dict[str, Any] = given if url is None else {**given, "url": url}
    unknown = arguments.keys() - {field.name for field in fields(Settings)}
    if unknown:
        raise InvalidSettings(f"unknown setting {', '.join(sorted(unknown))}; see mnemon.settings.Settings")
    file = _settings_file()
    named = any(name.upper().startswith(_PREFIX) for name in os.environ)
    if file is None and not named and arguments.keys() <= {"url"}:
        return Settings(**arguments)  # nothing to validate, so the validator need not be loaded
    return _validated(arguments, file)


def _settings_file() -> Path | None:
    named = os.environ.get(f"{_PREFIX}CONFIG")
    if named:
        if not Path(named).is_file():
            raise InvalidSettings(f"MNEMON_CONFIG names {named}, which is not a file")
        return Path(named)
    return next((Path(name) for name in _FILES if Path(name).is_file()), None)


def _validated(arguments: dict[str, Any], file: Path | None) -> Settings:
    from mnemon.validation import read_sources  # noqa: PLC0415 - slow to import, seldom needed

    return Settings(**read_sources(arguments, file))
