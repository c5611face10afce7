"""Settings read and checked by pydantic-settings; loaded only when there is something to check."""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
    YamlConfigSettingsSource,
)

from mnemon.errors import InvalidSettings
from mnemon.model import RetentionPolicy
from mnemon.namespaces import check_prefix
from mnemon.policies import check_policies
from mnemon.settings import Settings

_BOUNDS: dict[str, dict[str, Any]] = {
    "busy_timeout": {"gt": 0},
    "pool_size": {"ge": 1},
    "connect_timeout": {"gt": 0},
    "content_url": {"pattern": "^(file|memory|s3|gs|az)://"},
    "max_key_length": {"ge": 1},
    "max_namespace_length": {"ge": 8},
    "max_value_bytes": {"ge": 2},
    "max_events_kept": {"ge": 1},
    "seal_interval": {"ge": 0},
    "index_delay": {"ge": 0},
    "consolidate_after": {"ge": 0},
    "embedder": {"min_length": 1},
    "embedder_timeout": {"gt": 0},
    "max_embedded_chars": {"ge": 1},
    "embedding_cache_rows": {"ge": 0},
    "openai_url": {"pattern": "^https?://"},
    "ollama_url": {"pattern": "^https?://"},
    "buffer_ttl": {"gt": 0},
    "scratchpad_ttl": {"gt": 0},
    "redis_copy_ttl": {"ge": 1},
    "redis_url": {"pattern": "^(rediss?|unix)://"},
    "language_model": {"min_length": 1},
    "language_model_timeout": {"gt": 0},
    "language_model_context": {"ge": 1024},
    "vector_timeout": {"gt": 0},
    "vector_collection_prefix": {"pattern": "^[a-z][a-z0-9_]{0,39}$"},
    "qdrant_shards": {"ge": 1},
    "qdrant_replicas": {"ge": 1},
    "chunk_tokens": {"ge": 16, "le": 8192},
    "max_document_bytes": {"ge": 1},
    "growth_alert": {"ge": 1},
    "retention_interval": {"ge": 0},
}


def read_sources(arguments: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """Every setting, from the arguments, the environment and `file`, checked."""
    try:
        return dict(_sources_with(file)(**arguments))
    except ValidationError as error:
        raise InvalidSettings(_explain(error)) from None
    except Exception as error:  # the readers of the files have errors of their own
        raise InvalidSettings(f"{file or 'the environment'} cannot be read: {error}") from error


@lru_cache(maxsize=4)
def _sources_with(file: Path | None) -> type[BaseSettings]:
    """Making the class takes far longer than reading with it, which looks at everything anew each time."""
    return sources(lambda: file)


def sources(find_file: Callable[[], Path | None], *, dotenv: str | None = None) -> type[BaseSettings]:
    """The class of settings that reads arguments, the environment, the file `dotenv`, and a settings file."""

    class Sources(BaseSettings):
        model_config = SettingsConfigDict(
            env_prefix="MNEMON_", env_file=dotenv, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
        )

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            own = _OwnVariables(settings_cls, dotenv_settings)
            return (init_settings, env_settings, own, *_file_source(settings_cls, find_file()))

    hints = get_type_hints(Settings)
    columns: dict[str, Any] = {
        field.name: (
            _readable(field.name, hints[field.name]),
            Field(field.default, repr=field.repr, **_BOUNDS.get(field.name, {})),
        )
        for field in fields(Settings)
    }
    return create_model("Sources", __base__=Sources, **columns)


class _OwnVariables(PydanticBaseSettingsSource):
    """What a file of variables says of Mnemon's settings; it may have those of other programs too."""

    def __init__(self, settings: type[BaseSettings], variables: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        self._variables = variables

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return self._variables.get_field_value(field, field_name)

    def __call__(self) -> dict[str, Any]:
        known = self.settings_cls.model_fields
        found = self._variables().items()
        return {name: value for name, value in found if name in known or name.startswith("mnemon_")}


def _readable(name: str, hint: Any) -> Any:
    """The type with what it takes to read it from a text: a list may be written with commas."""
    if get_origin(hint) is not tuple:
        return hint
    return Annotated[hint, NoDecode, BeforeValidator(_parts), AfterValidator(_CHECKS.get(name, tuple))]


def _parts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return orjson.loads(value)  # for parts that have commas themselves
    return [part.strip() for part in value.split(",") if part.strip()]


def _prefixes(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_prefix(value, 10_000) for value in values)


def _price(values: tuple[float, ...]) -> tuple[float, ...]:
    if len(values) not in (0, 2) or any(value < 0 for value in values):
        raise ValueError("there should be two numbers that are not negative: for a million tokens in, and out")
    return values


def _policies(values: tuple[RetentionPolicy, ...]) -> tuple[RetentionPolicy, ...]:
    return check_policies(values)


_CHECKS: dict[str, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {
    "remember_events": _prefixes,
    "encrypted_namespaces": _prefixes,
    "language_model_price": _price,
    "retention": _policies,
}


def _file_source(settings: type[BaseSettings], file: Path | None) -> list[PydanticBaseSettingsSource]:
    if file is None:
        return []
    if file.suffix == ".toml":
        return [TomlConfigSettingsSource(settings, file)]
    return [YamlConfigSettingsSource(settings, file)]


def _explain(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return f"the settings cannot be used: {'; '.join(problems)}"
