"""Settings: arguments win over the environment, that over a file, and that over the defaults."""

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon import Settings, sync
from mnemon.config import load_settings

BAD: dict[str, tuple[Any, ...]] = {
    "url": (5, None, Path("x.db")),
    "create": ("perhaps",),
    "migrate": ("perhaps",),
    "synchronous": ("off", "NORMAL", 1),
    "busy_timeout": (0, -1, "soon", math.nan, math.inf),
    "postgres_schema": (7,),
    "pool_size": (0, -3, 1.5, "many"),
    "connect_timeout": (0, -1, "soon"),
    "max_key_length": (0, 1.5, "long"),
    "max_namespace_length": (7, "long"),
    "max_value_bytes": (1, "big"),
    "max_events_kept": (0, -5, "few"),
    "seal_interval": (-1, "often"),
    "seal_key": (5,),
    "background": ("perhaps", 5),
    "index_delay": (-1, "soon", math.inf),
    "remember_events": (5, [7], "[not json", ["nowhere"], "user:alice, who:bob"),
    "embedder": (5, ""),
    "embedder_fallbacks": (5, [7], "[not json"),
    "embedder_timeout": (0, -1, "soon", math.inf),
    "max_embedded_chars": (0, 1.5, "all"),
    "embedding_cache_rows": (-1, 1.5, "many"),
    "openai_url": (5, None, "localhost:8080"),
    "openai_api_key": (5,),
    "ollama_url": (5, None, "localhost:11434"),
    "redis_url": (5, "localhost:6379"),
    "working_store": (5, "Redis", "disk"),
    "working_reads": (5, "cache"),
    "buffer_ttl": (0, -1, "soon", math.inf),
    "scratchpad_ttl": (0, -1, "soon", math.inf),
    "redis_copy_ttl": (0, "soon", math.inf),
    "encrypted_namespaces": (5, [7], "[not json", ["nowhere"]),
    "encryption_keys": (5, [7], "[not json"),
    "encryption_key_file": (5,),
    "encrypted_vectors": (5, "maybe"),
    "content_url": (5, "folder", "ftp://host/folder"),
    "chunk_tokens": (15, 8193, 1.5, "all"),
    "max_document_bytes": (0, "big"),
    "language_model": (5, ""),
    "language_model_timeout": (0, -1, "soon", math.inf),
    "language_model_context": (1000, 1.5, "all"),
    "language_model_price": (5, [1.0], [1.0, -1.0], "cheap", "1,2,3", [math.nan, 1.0]),
    "vector_stores": (5, [7], "[not json"),
    "vector_timeout": (0, -1, "soon", math.inf),
    "vector_collection_prefix": (5, "", "Mnemon", "a-b", "9", "x" * 41),
    "qdrant_shards": (0, 1.5, "many"),
    "qdrant_replicas": (0, 1.5, "many"),
    "consolidate_after": (-1, "soon", math.inf),
    "consolidation_strategy": (5, "newest"),
    "retention": (
        5,
        "old",
        "[not json",
        [{}],
        [{"name": "x", "max_age_days": -1}],
        [{"name": "x", "max_days": 1}],
        [{"name": "x", "types": ["odd"]}],
        [{"name": "x"}, {"name": "x"}],
        [{"name": "x", "max_age_days": math.inf}],
        [mnemon.RetentionPolicy(name="x", versions_kept=0)],
        [mnemon.RetentionPolicy(name="x", max_size="big")],  # pyright: ignore[reportArgumentType]
    ),
    "retention_interval": (-1, "daily", math.inf),
    "growth_alert": (0, 1.5, "much"),
    "count_uses": ("perhaps", 5),
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_anything_the_defaults_hold() -> None:
    assert load_settings(None, {}) == Settings()
    assert Settings().url == "sqlite:///mnemon.db"


# ------------------------------------------------------------------------------------------------------- precedence


def test_an_argument_wins_over_the_environment_and_that_over_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a file, an environment and arguments that disagree
    Path("mnemon.toml").write_text("busy_timeout = 1.0\npool_size = 2\nmax_key_length = 3\nmigrate = false\n")
    monkeypatch.setenv("MNEMON_POOL_SIZE", "20")
    monkeypatch.setenv("MNEMON_MAX_KEY_LENGTH", "30")
    settings = load_settings(None, {"max_key_length": 300})
    # then each setting comes from the strongest that has it
    assert settings == Settings(busy_timeout=1.0, pool_size=20, max_key_length=300, migrate=False)


@pytest.mark.parametrize("name", ["mnemon.toml", "mnemon.yaml", "mnemon.yml"])
def test_a_file_in_the_working_directory_is_read(name: str) -> None:
    text = "pool_size = 3\nsynchronous = 'full'" if name.endswith("toml") else "pool_size: 3\nsynchronous: full"
    Path(name).write_text(text)
    assert load_settings(None, {}) == Settings(pool_size=3, synchronous="full")


def test_toml_is_read_before_yaml() -> None:
    Path("mnemon.yaml").write_text("pool_size: 4")
    Path("mnemon.toml").write_text("pool_size = 3")
    assert load_settings(None, {}).pool_size == 3


def test_the_environment_may_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mnemon.toml").write_text("pool_size = 3")
    (tmp_path / "other.yaml").write_text("pool_size: 4")
    monkeypatch.setenv("MNEMON_CONFIG", str(tmp_path / "other.yaml"))
    assert load_settings(None, {}).pool_size == 4


def test_a_named_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_CONFIG", "nowhere.toml")
    with pytest.raises(mnemon.InvalidSettings, match=r"MNEMON_CONFIG names nowhere\.toml"):
        load_settings(None, {})


def test_the_url_comes_by_the_same_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mnemon.toml").write_text("url = 'sqlite:///file.db'")
    assert load_settings(None, {}).url == "sqlite:///file.db"
    monkeypatch.setenv("MNEMON_URL", "sqlite:///environment.db")
    assert load_settings(None, {}).url == "sqlite:///environment.db"
    assert load_settings("sqlite:///argument.db", {}).url == "sqlite:///argument.db"


def test_names_in_the_environment_may_be_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("mnemon_pool_size", "6")
    assert load_settings(None, {}).pool_size == 6


@pytest.mark.parametrize("field", [field.name for field in fields(Settings)])
def test_every_setting_can_come_from_the_environment(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {
        "synchronous": "full", "migrate": "false", "url": "sqlite://", "seal_key": "k", "postgres_schema": "s",
        "create": "false", "background": "false", "remember_events": "user:alice", "encrypted_namespaces": "user",
        "openai_url": "http://a", "ollama_url": "http://b", "redis_url": "redis://c", "content_url": "memory://",
        "working_store": "redis", "working_reads": "database", "consolidation_strategy": "none",
        "retention": '[{"name": "short", "max_age_days": 7}]', "count_uses": "false", "encrypted_vectors": "true",
        "vector_collection_prefix": "p", "language_model_price": "0.15, 0.6", "language_model_context": "9000",
    }  # fmt: skip
    monkeypatch.setenv(f"MNEMON_{field.upper()}", value.get(field, "77"))
    assert getattr(load_settings(None, {}), field) != getattr(Settings(), field)


def test_settings_reach_the_store_that_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mnemon.toml").write_text("max_value_bytes = 20\nurl = 'sqlite:///from_file.db'")
    monkeypatch.setenv("MNEMON_MAX_EVENTS_KEPT", "5")
    with sync.open(max_key_length=6) as memory:
        memory.sessions.create_session("s1", "app", "alice")
        with pytest.raises(mnemon.ValueTooLarge):
            memory.sessions.append_event("s1", {"text": "x" * 20})
        with pytest.raises(mnemon.InvalidIdentifier):
            memory.state.set("longkey", 1, session_id="s1")
        memory.sessions.append_events("s1", [{"n": n} for n in range(12)])
        assert len(memory.sessions.events("s1")) == 5
    assert Path("from_file.db").exists()


@pytest.mark.parametrize(
    "text",
    ["onnx, openai:a?url=http://b/v1", '["onnx", "openai:a?url=http://b/v1"]', " onnx ,,openai:a?url=http://b/v1"],
)
def test_a_list_may_be_written_with_commas_or_as_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ("onnx", "openai:a?url=http://b/v1")
    monkeypatch.setenv("MNEMON_EMBEDDER_FALLBACKS", text)
    assert load_settings(None, {}).embedder_fallbacks == wanted
    assert load_settings(None, {"embedder_fallbacks": ["static"]}).embedder_fallbacks == ("static",)
    monkeypatch.delenv("MNEMON_EMBEDDER_FALLBACKS")
    for name, sign in (("mnemon.yaml", ":"), ("mnemon.toml", " =")):
        Path(name).write_text(f"embedder_fallbacks{sign} {text!r}")
        assert load_settings(None, {}).embedder_fallbacks == wanted


def test_a_list_in_a_file_is_a_list() -> None:
    Path("mnemon.toml").write_text('embedder_fallbacks = ["onnx:/a,b", "static"]')
    assert load_settings(None, {}).embedder_fallbacks == ("onnx:/a,b", "static")


# -------------------------------------------------------------------------------------------------------- bad settings


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_argument_is_named(name: str, value: Any) -> None:
    with pytest.raises(mnemon.InvalidSettings, match=rf"\b{name}\b"):
        load_settings(None, {name: value})


def test_every_setting_is_checked() -> None:
    assert BAD.keys() == {field.name for field in fields(Settings)}


def test_a_url_alone_is_checked_too() -> None:
    with pytest.raises(mnemon.InvalidSettings, match="url"):
        sync.open(Path("memory.db"))  # type: ignore[arg-type]


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_POOL_SIZE", "many")
    with pytest.raises(mnemon.InvalidSettings, match="pool_size"):
        load_settings(None, {})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mnemon.toml", "pool_size = 0", "pool_size"),
        ("mnemon.toml", "colour = 'red'", "colour"),
        ("mnemon.toml", "pool_size = = 3", r"mnemon\.toml cannot be read"),
        ("mnemon.yaml", "pool_size: 0", "pool_size"),
        ("mnemon.yaml", "colour: red", "colour"),
        ("mnemon.yaml", "a: b: c", r"mnemon\.yaml cannot be read"),
        ("mnemon.yaml", "- pool_size", r"mnemon\.yaml cannot be read"),
    ],
)
def test_a_bad_file_says_what_is_wrong_with_it(name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    with pytest.raises(mnemon.InvalidSettings, match=message):
        load_settings(None, {})


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(mnemon.InvalidSettings, match="unknown setting colour"):
        sync.open("sqlite://", colour="red")


def test_a_secret_is_not_repeated_in_a_complaint() -> None:
    with pytest.raises(mnemon.InvalidSettings) as caught:
        load_settings("postgresql://alice:hushhush@host/db", {"seal_key": 5, "pool_size": "hush"})
    assert "hush" not in str(caught.value)


def test_a_bad_setting_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="pool_size"):
        sync.open("sqlite://", pool_size=0)


def test_a_variable_that_is_not_a_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_BUSY_TIMEOUTS", "3")
    with pytest.raises(mnemon.InvalidSettings, match="MNEMON_BUSY_TIMEOUTS in the environment is not a setting"):
        load_settings(None, {})


def test_settings_keep_their_secrets_out_of_logs() -> None:
    shown = repr(
        mnemon.Settings(
            url="postgresql://agent:secret@db/agents", seal_key="secret",
            openai_api_key="secret", redis_url="redis://:secret@cache",
        )
    )  # fmt: skip
    assert "secret" not in shown
