"""Vector spaces: one active, one that is filled beside it, and the switch; all of it journaled."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mnemon import ConflictError, InvalidTransition, NotFound, Settings
from mnemon.model import EmbeddingModel, SpaceStatus
from mnemon.ports import Store
from mnemon.spaces import Spaces
from mnemon.testing import ManualClock
from mnemon.testing.suite import journal_after, peek, plant

ROOT = Path(__file__).parents[2]
OLD = EmbeddingModel("old", "1", 3)
NEW = EmbeddingModel("new", "2", 4)
OTHER = EmbeddingModel("other", "1", 5)


@pytest.fixture
def spaces(store: Store, clock: ManualClock) -> Spaces:
    return Spaces(store, clock)


@pytest.fixture
def elsewhere(store: Store, clock: ManualClock) -> Spaces:
    """The same spaces, as another process sees them."""
    return Spaces(store, clock)


async def operations(store: Store) -> list[tuple[str, str]]:
    return [(entity_id, operation) for _, entity_id, operation, _, _ in await journal_after(store)]


async def test_a_new_database_has_no_space(spaces: Spaces) -> None:
    assert await spaces.all() == await spaces.readable() == await spaces.writable() == ()
    assert await spaces.active() is None


async def test_the_first_space_is_active_and_made_once(spaces: Spaces, store: Store, clock: ManualClock) -> None:
    space = await spaces.ensure("fake", OLD)
    assert (space.provider, space.model, space.status) == ("fake", OLD, SpaceStatus.ACTIVE)
    assert space.created_at == clock.moment
    assert await spaces.ensure("other", OTHER) == space, "there was one already"
    assert await spaces.active() == space
    assert await spaces.readable() == await spaces.writable() == (space,)
    assert await journal_after(store) == [("space", str(space.id), "create", None, None)]
    (payload,) = (await peek(store, "SELECT payload FROM journal"))[0]
    assert json.loads(payload) == {"model": "old", "version": "1", "dimension": 3}


async def test_a_second_space_is_filled_beside_the_active_one(spaces: Spaces, store: Store) -> None:
    active = await spaces.ensure("fake", OLD)
    filling = await spaces.begin("new:x", NEW)
    assert filling.status is SpaceStatus.FILLING
    assert await spaces.readable() == await spaces.writable() == (active, filling)
    assert await spaces.begin("new:x", NEW) == filling, "to go on is to begin again"
    assert await spaces.begin("fake", OLD) == active, "there is nothing to fill"
    assert await operations(store) == [(str(active.id), "create"), (str(filling.id), "fill")]


async def test_only_one_space_is_filled_at_a_time(spaces: Spaces) -> None:
    await spaces.ensure("fake", OLD)
    filling = await spaces.begin("new", NEW)
    with pytest.raises(ConflictError, match=r"new 2 \(4 dimensions\) is being filled.*other 1 \(5 dimensions\)"):
        await spaces.begin("other", OTHER)
    await spaces.retire(filling)
    assert (await spaces.begin("other", OTHER)).status is SpaceStatus.FILLING


async def test_the_two_change_places_in_one_transaction(spaces: Spaces, store: Store) -> None:
    old = await spaces.ensure("fake", OLD)
    new = await spaces.begin("new", NEW)
    activated = await spaces.activate(new)
    assert activated.status is SpaceStatus.ACTIVE
    assert await spaces.active() == activated
    assert await spaces.readable() == (activated,)
    assert [space.status for space in await spaces.all()] == [SpaceStatus.RETIRED, SpaceStatus.ACTIVE]
    assert (await operations(store))[2:] == [(str(old.id), "retire"), (str(new.id), "activate")]
    assert await spaces.activate(new) == activated
    assert len(await operations(store)) == 4, "nothing changed the second time"


async def test_a_retired_space_can_be_taken_up_again(spaces: Spaces) -> None:
    old = await spaces.ensure("fake", OLD)
    await spaces.activate(await spaces.begin("new", NEW))
    again = await spaces.begin("fake:elsewhere", OLD)
    assert (again.id, again.status, again.provider) == (old.id, SpaceStatus.FILLING, "fake:elsewhere")
    assert (await spaces.activate(again)).id == old.id


async def test_what_cannot_follow_is_refused(spaces: Spaces) -> None:
    active = await spaces.ensure("fake", OLD)
    with pytest.raises(InvalidTransition, match="in use; activate another"):
        await spaces.retire(active)
    with pytest.raises(InvalidTransition, match="is active; retire it"):
        await spaces.drop(active)
    new = await spaces.begin("new", NEW)
    with pytest.raises(InvalidTransition, match="is filling; retire it"):
        await spaces.drop(new)
    retired = await spaces.retire(new)
    assert await spaces.retire(new) == retired
    with pytest.raises(InvalidTransition, match="is retired; begin to fill it first"):
        await spaces.activate(new)


async def test_a_dropped_space_leaves_nothing(spaces: Spaces, store: Store) -> None:
    active = await spaces.ensure("fake", OLD)
    retired = await spaces.retire(await spaces.begin("new", NEW))
    embedding = b"\0" * 12 if "Sqlite" in type(store).__name__ else "[0,0,0]"
    for space in (active, retired):
        for memory_id in range(1, 1501 if space is retired else 3):
            await plant(
                store,
                "INSERT INTO memory_vectors (space_id, memory_id, embedding) VALUES (:space, :memory, :embedding)",
                space=space.id, memory=memory_id, embedding=embedding,
            )  # fmt: skip
        await plant(
            store, "INSERT INTO embedding_cache VALUES (:space, 'd', :embedding, 1)", space=space.id, embedding=b""
        )
    await spaces.drop(retired)
    assert await spaces.all() == (active,)
    for table, rows in (("memory_vectors", 2), ("embedding_cache", 1), ("vector_spaces", 1)):
        assert await peek(store, f"SELECT COUNT(*) FROM {table}") == [(rows,)]
    assert (await operations(store))[-1] == (str(retired.id), "drop")
    for change in (spaces.drop, spaces.activate, spaces.retire):
        with pytest.raises(NotFound, match=r"no space of new 2 \(4 dimensions\) any more"):
            await change(retired)


async def test_a_database_without_an_active_space_takes_what_it_has(spaces: Spaces) -> None:
    filling = await spaces.begin("new", NEW)
    assert await spaces.readable() == (filling,)
    assert (await spaces.ensure("new", NEW)).id == filling.id
    assert (await spaces.active()) is not None


async def test_what_another_process_changes_is_noticed_after_a_second(
    spaces: Spaces, elsewhere: Spaces, clock: ManualClock
) -> None:
    active = await spaces.ensure("fake", OLD)
    assert await elsewhere.readable() == (active,)
    new = await spaces.begin("new", NEW)
    clock.advance(0.999)
    assert await elsewhere.readable() == (active,), "read again too soon"
    clock.advance(0.001)
    assert await elsewhere.readable() == (active, new)
    await spaces.activate(new)
    elsewhere.forget()
    assert [space.id for space in await elsewhere.readable()] == [new.id]


async def test_the_spaces_are_believed_for_a_second_and_no_longer(
    spaces: Spaces, store: Store, clock: ManualClock
) -> None:
    await spaces.ensure("fake", OLD)
    await plant(store, "UPDATE vector_spaces SET provider = 'changed'")
    assert (await spaces.readable())[0].provider == "fake"
    clock.advance(-5)  # a clock that is set back makes nobody believe for longer
    assert (await spaces.readable())[0].provider == "changed"


async def test_those_who_race_for_the_first_space_get_the_same(store: Store, clock: ManualClock) -> None:
    found = await asyncio.gather(*(Spaces(store, clock).ensure("fake", OLD) for _ in range(8)))
    assert len(set(found)) == 1
    assert await operations(store) == [(str(found[0].id), "create")]


RACE = """
import asyncio, sys
import mnemon
from mnemon.backends.{technology} import opening
from mnemon.model import EmbeddingModel
from mnemon.spaces import Spaces

async def main(url, schema, name):
    backend = await opening.open_async(mnemon.Settings(url=url, postgres_schema=schema))
    spaces = Spaces(backend.store, mnemon.SystemClock())
    print("ready", flush=True)
    sys.stdin.readline()
    space = await spaces.ensure(name, EmbeddingModel(name, "1", 3))
    print(space.id, space.model.name, flush=True)
    await backend.store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def race(settings: Settings, names: Sequence[str]) -> set[str]:
    """What processes say that make the first space at the same time."""
    technology = "sqlite" if settings.url.startswith("sqlite") else "postgres"
    command = [sys.executable, "-c", RACE.format(technology=technology), settings.url, settings.postgres_schema]
    children = [
        subprocess.Popen([*command, name], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in names
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return {child.communicate(timeout=60)[0] for child in children}
    finally:
        for child in children:
            child.kill()
            child.communicate()


async def test_processes_that_race_for_the_first_space_agree(settings: Settings, store: Store) -> None:
    said = await asyncio.to_thread(race, settings, ("static", "onnx", "static", "onnx"))
    assert len(said) == 1
    assert len(await peek(store, "SELECT id FROM vector_spaces")) == 1
    assert [operation for _, operation in await operations(store)] == ["create"]
