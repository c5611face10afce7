"""Retention beside other things: vectors, encryption, restarts."""

import asyncio
import sys
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon.clock import micros
from mnemon.hybrid import HybridMemoryService
from mnemon.retention import keeper
from mnemon.retention.turns import Turns
from mnemon.testing import QUIET, FakeEmbedder, ManualClock
from mnemon.testing.handles import parts_of, with_settings
from mnemon.testing.suite import peek, plant

ANN = "user:ann"
KEYS = {"encrypted_namespaces": (ANN,), "encryption_keys": ("m1:" + b64encode(bytes(range(32))).decode(),)}
SQUASH = (mnemon.RetentionPolicy(name="squash", versions_kept=1, squash=True),)
AGE = (mnemon.RetentionPolicy(name="age", max_age_days=1),)


def chosen(**settings: Any) -> dict[str, Any]:
    return {**QUIET, "content_url": "memory://", **settings}


async def test_vectors_of_what_is_gone_are_pruned() -> None:
    clock = ManualClock()
    settings = chosen(embedder=FakeEmbedder(8), retention=AGE)
    async with await mnemon.open("sqlite://", clock=clock, **settings) as memory:
        await memory.remember("The sky is blue.", namespace=ANN, key="old")
        clock.advance(2 * 86_400)
        await memory.remember("The sea is deep.", namespace=ANN, key="new")
        plan = await memory.retention.apply()
        assert (plan.applied, plan.pruned_vectors) == (1, 1)
        assert await memory.retention.prune() == 0
        [(count,)] = await peek(parts_of(memory).store, "SELECT COUNT(*) FROM memory_vectors")
        assert count == 1
        await memory.retention.restore(plan.archives[0])
        [(count,)] = await peek(parts_of(memory).store, "SELECT COUNT(*) FROM memory_vectors")
        assert count == 2
        assert {hit.memory.key for hit in await memory.recall("The sky is blue.", namespaces=ANN)} == {"old", "new"}


async def test_uses_are_written_when_a_memory_is_closed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    async with await mnemon.open(url, **chosen()) as memory:
        await memory.remember("The sky is blue.", namespace=ANN, key="sky")
        await memory.recall("sky", namespaces=ANN)
    async with await mnemon.open(url, **chosen(count_uses=False)) as memory:
        await memory.recall("sky", namespaces=ANN)
    async with await mnemon.open(url, **chosen()) as memory:
        assert await peek(parts_of(memory).store, "SELECT key, uses FROM memory_uses") == [("sky", 1)]


async def test_archives_survive_a_restart_and_cleaning_up(tmp_path: Path) -> None:
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/m.db"
    async with await mnemon.open(url, clock=clock, **{**QUIET, "retention": AGE}) as memory:
        await memory.remember("The sky is blue.", namespace=ANN, key="sky")
        clock.advance(2 * 86_400)
        [archive] = (await memory.retention.apply()).archives
    async with await mnemon.open(url, clock=clock, **QUIET) as memory:
        await memory.artifacts.cleanup(grace=timedelta(0))
        assert (await memory.retention.restore(archive)).memories == 1


async def test_what_is_encrypted_stays_so_in_archives_and_summaries(tmp_path: Path) -> None:
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/m.db"
    async with await mnemon.open(url, clock=clock, **{**QUIET, **KEYS, "retention": SQUASH}) as memory:
        for place in ("Bergen", "Oslo", "Rome"):
            await memory.remember(f"Ann lives in {place}.", namespace=ANN, key="home", metadata={"to": place})
        before = await memory.memories.get_memory_history(ANN, "home")
        [archive] = (await memory.retention.apply()).archives
        summary, _ = await memory.memories.get_memory_history(ANN, "home")
        assert "Bergen" in summary.value
        [(name,)] = await peek(parts_of(memory).store, "SELECT sha256 FROM archives")
        content = await parts_of(memory).contents.whole(name)
        rows = await peek(parts_of(memory).store, "SELECT value, metadata FROM memory_entries")
        assert b"Bergen" not in content
        assert "Bergen" not in str(rows)
        await memory.retention.restore(archive)
        after = await memory.memories.get_memory_history(ANN, "home")
        assert [(each.value, each.metadata) for each in after] == [(each.value, each.metadata) for each in before]


async def test_a_pin_that_is_encrypted_holds() -> None:
    clock = ManualClock()
    async with await mnemon.open("sqlite://", clock=clock, **chosen(**KEYS, retention=AGE)) as memory:
        await memory.remember("one", namespace=ANN, key="pinned", metadata={"pinned": True})
        await memory.remember("two", namespace=ANN, key="other", metadata={"pinned": False})
        clock.advance(2 * 86_400)
        assert [action.key for action in (await memory.retention.apply()).actions] == ["other"]


async def test_what_was_archived_in_the_open_is_encrypted_when_it_comes_back(tmp_path: Path) -> None:
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/m.db"
    async with await mnemon.open(url, clock=clock, **{**QUIET, "retention": AGE}) as memory:
        await memory.remember("Ann lives in Bergen.", namespace=ANN, key="home")
        clock.advance(2 * 86_400)
        [archive] = (await memory.retention.apply()).archives
    async with await mnemon.open(url, clock=clock, **{**QUIET, **KEYS}) as memory:
        await memory.retention.restore(archive)
        [(value,)] = await peek(parts_of(memory).store, "SELECT value FROM memory_entries WHERE namespace > ''")
        assert "Bergen" not in value
        found = await memory.memories.get_memory(ANN, "home")
        assert found is not None
        assert found.value == "Ann lives in Bergen."


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_no_byte_of_what_was_purged_is_left_beside_the_database(tmp_path: Path) -> None:
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/m.db"
    policies = (mnemon.RetentionPolicy(name="old", max_age_days=1, versions_kept=1, squash=True),)
    async with await mnemon.open(url, clock=clock, **{**QUIET, "retention": policies}) as memory:
        for place in ("Bergen", "Oslo", "Rome"):
            await memory.remember(f"Ann lives in {place}.", namespace=ANN, key="home")
        await memory.remember("Ann plays the tuba.", namespace=ANN, key="hobby")
        assert len((await memory.retention.apply()).archives) == 1  # of old versions
        clock.advance(2 * 86_400)
        assert len((await memory.retention.apply()).archives) == 1  # of everything
        assert {mark for mark in (b"Bergen", b"Oslo", b"Rome") if mark in everything_in(tmp_path)} >= {b"Rome"}
        receipt = await memory.memories.purge_memory(ANN, "home")
        assert (receipt.versions, len(receipt.archives)) == (0, 2)
        [left] = await memory.retention.archives()
        assert (left.memories, left.versions) == (1, 1)
    found = everything_in(tmp_path)
    assert [mark for mark in (b"Bergen", b"Oslo", b"Rome") if mark in found] == []
    assert b"tuba" in found


async def test_what_cannot_be_read_stays_and_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    async with await mnemon.open("sqlite://", clock=clock, **chosen(**KEYS, retention=SQUASH)) as memory:
        for text in ("one", "two"):
            await memory.remember(text, namespace=ANN, key="secret", metadata={"of": text})
            await memory.remember(text, namespace="user:bob", key="open")
        keyless = HybridMemoryService(replace(parts_of(memory), sealing=None))
        strict = with_settings(keyless, retention=(mnemon.RetentionPolicy(name="few", versions_kept=1, squash=True),))
        plan = await strict.retention.apply()
        assert [(action.key, action.status) for action in plan.actions] == [("open", "applied")]
        assert "may be pinned" in caplog.text


async def test_what_cannot_be_archived_stays_and_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await mnemon.open("sqlite://", **chosen(**KEYS, retention=SQUASH)) as memory:
        for text in ("one", "two"):
            await memory.remember(text, namespace=ANN, key="secret")
            await memory.remember(text, namespace="user:bob", key="open")
        contents = parts_of(memory).contents
        keep = contents.put

        async def put(data: Any, namespace: str) -> Any:
            if namespace == ANN:
                raise mnemon.KeyUnavailable("the provider of keys is down")
            return await keep(data, namespace)

        monkeypatch.setattr(contents, "put", put)
        plan = await memory.retention.apply()
        assert {action.key: action.status for action in plan.actions} == {"secret": "failed", "open": "applied"}
        assert [each.value for each in await memory.memories.get_memory_history(ANN, "secret")] == ["one", "two"]


async def test_old_versions_that_cannot_be_read_go_without_a_summary(caplog: pytest.LogCaptureFixture) -> None:
    async with await mnemon.open("sqlite://", **chosen(**KEYS, retention=SQUASH)) as memory:
        for text in ("one", "two"):
            await memory.remember(text, namespace=ANN, key="secret")
        store = parts_of(memory).store
        [(value,)] = await peek(store, "SELECT value FROM memory_entries WHERE version = 2")
        await plant(store, f"UPDATE memory_entries SET value = '{value}' WHERE version = 1")  # it belongs elsewhere
        assert (await memory.retention.apply()).applied == 1
        first, second = await memory.memories.get_memory_history(ANN, "secret")
        assert (first.value, first.is_deleted, second.value) == (None, True, "two")
        assert "without a summary" in caplog.text


async def test_sizes_are_bytes(tmp_path: Path) -> None:
    async with await mnemon.open("sqlite://", **chosen()) as memory:
        await memory.remember("€" * 10, namespace=ANN, key="k")
        [use] = (await memory.retention.plan()).policies
        assert use.size == len('"' + "€" * 10 + '"' + "{}") + 20


async def test_reading_by_key_counts_where_relevance_matters() -> None:
    judged = (mnemon.RetentionPolicy(name="judged", min_relevance=0.2),)
    for retention, counted in ((judged, [("k", 2)]), ((), [("k", 1)])):
        async with await mnemon.open("sqlite://", **chosen(retention=retention)) as memory:
            await memory.remember("The sky is blue.", namespace=ANN, key="k")
            await memory.memories.get_memory(ANN, "k")
            await memory.context("sky", namespaces=ANN)
            await memory.retention.apply()
            assert await peek(parts_of(memory).store, "SELECT key, uses FROM memory_uses") == counted


async def test_the_background_applies_the_policies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(keeper, "_FIRST", 0.0)
    monkeypatch.setattr(keeper, "_PAUSE", 0.01)
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/m.db"
    settings = {**QUIET, "retention": AGE, "background": True}
    async with mnemon.open(url, clock=clock, **settings) as memory, mnemon.open(url, clock=clock, **settings):
        await memory.remember("The sky is blue.", namespace=ANN, key="sky")
        clock.advance(2 * 86_400)
        async with asyncio.timeout(30):
            while not await memory.retention.archives():  # noqa: ASYNC110 - another thread does it
                await asyncio.sleep(0.01)
        assert await memory.memories.get_memory(ANN, "sky") is None
        async with asyncio.timeout(30):
            while "retention" in [each.name for each in await memory.consumers()]:  # noqa: ASYNC110 - another thread does it
                await asyncio.sleep(0.01)
        assert len((await memory.audit(entity="retention")).items) == 1
    clock.advance(2 * 86_400)
    async with await mnemon.open(url, clock=clock, **{**settings, "retention_interval": 0}) as memory:
        await asyncio.sleep(0.1)
        assert len((await memory.audit(entity="retention")).items) == 1


KILLED = """
import os, sys
from mnemon import sync
from mnemon.testing import QUIET, ManualClock
from mnemon.testing.handles import parts_of

clock = ManualClock()
clock.advance(2 * 86_400 + 0.5)
policy = {"name": "age", "max_age_days": 1}
with sync.open(sys.argv[1], clock=clock, **QUIET, retention=[policy]) as memory:
    contents = parts_of(memory._service).contents
    keep, made = contents.put, []

    async def put(data, namespace):
        made.append(await keep(data, namespace))
        if len(made) == 2:
            os._exit(9)
        return made[-1]

    contents.put = put
    memory.retention.apply_if_due()
"""


async def test_a_run_that_was_killed_is_done_by_another(tmp_path: Path) -> None:
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/m.db"
    async with await mnemon.open(url, clock=clock, **{**QUIET, "retention": AGE}) as memory:
        await memory.remember_many([{"text": f"fact {n}", "key": f"k{n:03}"} for n in range(120)], namespace=ANN)
        clock.advance(2 * 86_400)
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, url)
        assert await child.wait() == 9
        assert [each.memories for each in await memory.retention.archives()] == [50]
        assert await memory.retention.apply_if_due() is None  # the dead one has the lease
        clock.advance(61)
        plan = await memory.retention.apply_if_due()
        assert plan is not None
        assert plan.applied == 70
        archives = await memory.retention.archives()
        assert [each.memories for each in archives] == [50, 50, 20]
        for archive in archives:
            await memory.retention.restore(archive.id)
        restored = await memory.memories.search_memories(ANN, limit=200)
        assert sorted(each.value for each in restored) == sorted(f"fact {n}" for n in range(120))


async def test_what_fails_in_the_background_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []

    class Failing:
        async def apply_if_due(self) -> None:
            tried.append(1)
            if len(tried) == 1:
                raise mnemon.StoreUnavailable("no contents here")
            raise mnemon.StoreClosed("over")

    monkeypatch.setattr(keeper, "_FIRST", 0.0)
    monkeypatch.setattr(keeper, "_AFTER_FAILURE", 0.0)
    thread = keeper.Keeper(lambda _: Failing())  # type: ignore[arg-type,return-value]
    thread.start()
    async with asyncio.timeout(30):
        while len(tried) < 2:  # noqa: ASYNC110 - another thread does it
            await asyncio.sleep(0.01)
    thread.stop()
    assert caplog.text.count("could not be applied: no contents here") == 1


async def test_a_run_that_is_interrupted_leaves_the_turn_to_others(tmp_path: Path) -> None:
    clock = ManualClock()
    async with await mnemon.open("sqlite://", clock=clock, **chosen()) as memory:
        store, beats = parts_of(memory).store, list[int]()
        await memory.remember("The sky is blue.", namespace=ANN, key="sky")
        clock.advance(2 * 86_400)

        async def work(pulse: Any) -> str:
            await pulse()
            beats.append(1)
            clock.advance(50)
            await pulse()  # the lease is renewed
            clock.advance(50)
            assert await Turns(store, clock, 86_400, lambda: False).take(work) is None
            await pulse()
            return "done"

        assert await Turns(store, clock, 86_400, lambda: len(beats) == 1).take(work) is None
        assert await memory.consumers() == []
        beats.append(1)
        assert await Turns(store, clock, 86_400, lambda: False).take(work) == "done"
        assert len(beats) == 3


async def test_a_turn_that_was_lost_is_given_up() -> None:
    clock = ManualClock()
    async with await mnemon.open("sqlite://", clock=clock, **chosen()) as memory:
        store = parts_of(memory).store
        await memory.remember("The sky is blue.", namespace=ANN, key="sky")
        clock.advance(2 * 86_400)

        async def work(pulse: Any) -> str:
            until = micros(clock.advance(61)) + 60_000_000
            await plant(store, f"UPDATE consumers SET lease_owner = 'other', lease_until = {until}")
            await pulse()
            return "done"

        assert await Turns(store, clock, 86_400, lambda: False).take(work) is None
        assert [each.lease_owner for each in await memory.consumers()] == ["other"]
