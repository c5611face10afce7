"""Opening: what a URL means, what is loaded for it, and who may open what at the same time."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import mnemon
from mnemon import sync
from tests.robustness.behind import SqliteDatabase
from tests.robustness.children import FACES, create_one, finish_all, open_again_and_again, start


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files() -> list[str]:
    return [path.name for path in Path().iterdir()]


def use(url: str | None = None) -> None:
    with sync.open(url) as memory:
        memory.sessions.create_session("s1", "app", "alice")


# ------------------------------------------------------------------------------------------------------------- URLs


def test_without_a_url_the_file_is_in_the_working_directory() -> None:
    use()
    assert Path("mnemon.db").exists()


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///memory.db", "memory.db"),
        ("sqlite:///below/memory.db", "below/memory.db"),
        ("sqlite:///a%20b%23c%3Fd%25.db", "a b#c?d%.db"),
        ("sqlite:///mémoire.db", "mémoire.db"),
        ("sqlite:///m%C3%A9moire.db", "mémoire.db"),
        ("sqlite:///memory.db?mode=rw", "memory.db"),
        ("sqlite:///.hidden", ".hidden"),
    ],
)
def test_a_relative_url_names_a_file_of_the_working_directory(url: str, path: str) -> None:
    Path("below").mkdir()
    use(url)
    assert Path(path).stat().st_size > 0
    assert {found.name for found in Path().iterdir()} == {"below", path} - {"below/memory.db"}


def test_an_absolute_url_has_four_slashes(tmp_path: Path) -> None:
    use(f"sqlite:///{tmp_path}/memory.db")
    assert (tmp_path / "memory.db").exists()
    assert f"sqlite:///{tmp_path}".startswith("sqlite:////")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
async def test_a_url_without_a_file_is_in_memory(url: str) -> None:
    async with mnemon.open(url) as first, mnemon.open(url) as second:
        await first.sessions.create_session("s1", "app", "alice")
        assert await second.sessions.get_session("s1") is None  # each has its own
    assert files() == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory.db",
        "mysql://alice:hushhush@host/db",
        "file:memory.db",
        "sqlite:memory.db",
        "sqlite://memory.db",
        "sqlite://host/memory.db",
        "sqlite:///memory.db?mode=rwc",
        "sqlite:///memory.db?mode=memory",
        "sqlite:///memory.db?cache=shared",
        "sqlite:///a#b.db",
        "sqlite:///a%00b.db",
        "sqlite:///a\nb.db",
        "postgresql://[host",
        "postgresql://host/db?colour=red",
    ],
)
async def test_a_url_that_means_nothing_is_refused(url: str) -> None:
    with pytest.raises(mnemon.InvalidSettings, match=r"should be|the only option") as caught:
        await mnemon.open(url)
    assert "hushhush" not in str(caught.value)
    with pytest.raises(mnemon.InvalidSettings):
        sync.open(url)
    assert files() == []


def test_the_url_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_URL", "sqlite:///environment.db")
    use()
    assert Path("environment.db").exists()


# -------------------------------------------------------------------------------------------------- what is loaded

LOADED = """
import asyncio, sys, mnemon
async def main(session_id):
    async with mnemon.open("sqlite:///memory.db") as memory:
        await memory.sessions.create_session(session_id, "app", "alice")
        await memory.sessions.append_event(session_id, {"n": 1}, {"user:x": 1})
        await memory.memories.add_memory("user:alice", session_id, 1)
        await memory.memories.search_memories("user", where={"n": {"gt": 1}})
        await memory.audit()
        await memory.seal()
asyncio.run(main(sys.argv[1]))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
SLOW = {"pydantic", "pydantic_core", "pydantic_settings", "alembic", "sqlalchemy", "psycopg", "psycopg_pool", "yaml"}


@pytest.mark.parametrize("there", [False, True])
def test_plain_use_of_a_file_loads_nothing_that_is_slow(there: bool) -> None:
    if there:
        use("sqlite:///memory.db")
    done = subprocess.run([sys.executable, "-c", LOADED, "s2"], capture_output=True, text=True, check=True)
    assert SLOW & set(done.stdout.split()) == set()


# ------------------------------------------------------------------------------------------------------ opening twice


async def test_an_opening_is_awaited_or_entered() -> None:
    memory = await mnemon.open("sqlite:///memory.db")
    await memory.sessions.create_session("s1", "app", "alice")
    async with memory as same:
        assert same is memory
    with pytest.raises(mnemon.StoreClosed):
        await memory.sessions.get_session("s1")
    async with mnemon.open("sqlite:///memory.db") as memory:
        assert await memory.sessions.get_session("s1") is not None
    with pytest.raises(mnemon.StoreClosed):
        await memory.sessions.get_session("s1")


async def test_an_opening_closes_after_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError):
        async with mnemon.open("sqlite:///memory.db") as memory:
            raise ZeroDivisionError
    with pytest.raises(mnemon.StoreClosed):
        await memory.position()


async def test_a_file_may_be_opened_several_times_on_both_faces() -> None:
    url = "sqlite:///memory.db"
    async with mnemon.open(url) as first, mnemon.open(url) as second:
        with sync.open(url) as third:
            await first.sessions.create_session("s1", "app", "alice")
            await second.sessions.append_event("s1", {"n": 1})
            third.sessions.append_event("s1", {"n": 2})
            assert [event.body["n"] for event in await first.sessions.events("s1")] == [1, 2]
        # and closing one closes no other
        await second.sessions.append_event("s1", {"n": 3})
    assert files() == ["memory.db"]


async def test_many_may_open_a_new_file_at_once() -> None:
    async with asyncio.TaskGroup() as group:
        opened = [group.create_task(open_and_create(f"s{number}")) for number in range(20)]
    assert all(task.done() for task in opened)
    with sync.open("sqlite:///memory.db") as memory:
        assert len(memory.sessions.list_sessions()) == 20


async def open_and_create(session_id: str) -> None:
    async with mnemon.open("sqlite:///memory.db") as memory:
        await memory.sessions.create_session(session_id, "app", "alice")


@pytest.mark.parametrize("attempt", range(2))
def test_many_processes_may_create_the_same_file_at_once(tmp_path: Path, attempt: int) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    finish_all([start(create_one, url, f"s{number}", face=FACES[number % 2]) for number in range(8)])
    with sync.open(url) as memory:
        assert len(memory.sessions.list_sessions()) == 8
    SqliteDatabase(url).check()


def test_many_processes_may_create_the_same_schema_at_once(postgres_url: str) -> None:
    finish_all([start(create_one, postgres_url, f"s{number}", face=FACES[number % 2]) for number in range(8)])
    with sync.open(postgres_url) as memory:
        assert len(memory.sessions.list_sessions()) == 8


def test_processes_that_open_and_close_do_not_disturb_each_other(tmp_path: Path) -> None:
    # given the moments in which the last one closes the file while another opens it
    url = f"sqlite:///{tmp_path}/memory.db"
    use(url)
    finish_all([start(open_again_and_again, url, url, number, 15, face=FACES[number % 2]) for number in range(4)])
    with sync.open(url) as memory:
        assert len(memory.sessions.events("s1")) == 4 * 15
    SqliteDatabase(url).check()
