"""Settings read and checked by pydantic-settings; loaded only when there is something to check."""

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
    YamlConfigSettingsSource,
)

from mnemon.errors import InvalidSettings
from mnemon.settings import Settings


def read_sources(arguments: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """Every setting, from the arguments, the environment and `file`, checked."""

    class Sources(BaseSettings):
        model_config = SettingsConfigDict(env_prefix="MNEMON_", extra="forbid")

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (init_settings, env_settings, *_file_source(settings_cls, file))

    hints = get_type_hints(Settings, include_extras=True)
    columns: dict[str, Any] = {field.name: (hints[field.name], field.default) for field in fields(Settings)}
    model = create_model("Sources", __base__=Sources, **columns)
    try:
        return model(**arguments).model_dump()
    except ValidationError as error:
        raise InvalidSettings(_explain(error)) from None
    except (ImportError, ValueError) as error:
        raise InvalidSettings(f"{file} cannot be read: {error}") from error


def _file_source(settings: type[BaseSettings], file: Path | None) -> list[PydanticBaseSettingsSource]:
    if file is None:
        return []
    if file.suffix == ".toml":
        return [TomlConfigSettingsSource(settings, file)]
    return [YamlConfigSettingsSource(settings, file)]


def _explain(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return f"the settings cannot be used: {'; '.join(problems)}"
