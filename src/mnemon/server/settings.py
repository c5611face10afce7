"""The settings of `mnemon.Settings` as a pydantic-settings class, for applications that have others of that kind."""

from mnemon.config import settings_file
from mnemon.validation import sources


class MnemonSettings(sources(settings_file, dotenv=".env")):
    """Every setting, from arguments, `MNEMON_*` variables, the file `.env`, and `mnemon.toml` or `mnemon.yaml`.

    The first that says something of a setting wins. What cannot be used is pydantic's `ValidationError`.
    """
