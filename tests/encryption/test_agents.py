"""Agents and workspaces of encrypted namespaces."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import mnemon
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek, plant
from tests.encryption.test_sessions import opening, sealed_in

PLACE = "project:web"


async def begin(memory: mnemon.HybridMemoryService, name: str, namespace: str = PLACE) -> None:
    """An agent that has done something, and a workspace with a file and a snapshot."""
    agents, spaces = memory.agents, memory.workspaces
    await agents.create(name, name="scout", role="a spy", directives={"goals": ["spy"]}, namespace=namespace)
    await agents.capture_proposal(name, {"thoughts": name})
    await agents.succeed(name, 1, {"out": name}, summary=name, artifacts=["mnemon://artifacts/s/a?version=1"])
    await agents.capture_proposal(name, {"thoughts": "next"})
    await spaces.create(name, namespace=namespace, metadata={"w": name})
    await spaces.write(name, "a.txt", "text", metadata={"f": name})
    await spaces.snapshot(name, f"of {name}")


async def test_an_agent_lives_sealed(tmp_path: Path):
    async with opening(tmp_path, PLACE) as memory:
        await begin(memory, "a1")
        await begin(memory, "b1", "project:open")
        agents, store = memory.agents, parts_of(memory).store
        assert await sealed_in(store, "agents") == {"role": 1, "directives": 1, "config": 1, "metadata": 1}
        cycles = {"proposal": 2, "result": 1, "summary": 1, "artifacts": 2}
        assert await sealed_in(store, "agent_cycles") == cycles
        again = await agents.succeed("a1", 1, {"out": "a1"})  # the same again is fine
        assert again.summary == "a1"
        with pytest.raises(mnemon.ConflictError):
            await agents.succeed("a1", 1, {"out": "other"})
        await agents.update("a1", role="a hidden spy", expected_version=1)
        await agents.summarise("a1", 1, "in short")
    async with opening(tmp_path, PLACE) as memory:
        agents = memory.agents
        resumed = await agents.resume("a1")
        assert (resumed.agent.role, resumed.agent.directives) == ("a hidden spy", {"goals": ["spy"]})
        assert resumed.pending is not None
        assert resumed.pending.proposal["thoughts"] == "next"
        assert resumed.last is not None
        assert (resumed.last.summary, resumed.last.result and resumed.last.result["outputs"]) == (
            "in short",
            {"out": "a1"},
        )
        assert [each.role for each in (await agents.list(PLACE)).items] == ["a hidden spy"]
        assert [each.number for each in await agents.cycles("a1")] == [1, 2]
        told = await agents.export_autogpt("a1")
        copy = await agents.import_autogpt(told, agent_id="a2", namespace=f"{PLACE}:copies")
        assert copy.role == "a hidden spy"
        assert await agents.export_autogpt("a2") == {**told, "agent_id": "a2"}
        assert await sealed_in(parts_of(memory).store, "agents") == {
            "role": 2, "directives": 2, "config": 2, "metadata": 2,
        }  # fmt: skip
        rewound = await agents.rewind("a1", 0)
        assert rewound.pending is None


async def test_a_workspace_is_cloned_moved_and_restored(tmp_path: Path):
    """Given notes that are bound to where they are, then a clone, a move and a restoration bind them anew."""
    async with opening(tmp_path, PLACE) as memory:
        await begin(memory, "w1")
        spaces, store = memory.workspaces, parts_of(memory).store
        await spaces.move("w1", "a.txt", "b.txt")
        await spaces.clone("w1", "w2", namespace=PLACE)
        await spaces.clone("w1", "w3", namespace="project:open", at=1)
        await spaces.restore("w1", 1)
        assert await sealed_in(store, "workspaces") == {"metadata": 2}
        assert await sealed_in(store, "workspace_snapshots") == {"message": 1}
        rows = await peek(store, "SELECT workspace_id, metadata FROM workspace_files")
        assert sorted({(name, text.startswith('"\\u0073ealed')) for name, text in rows}) == [
            ("w1", True), ("w2", True), ("w3", False),
        ]  # fmt: skip
        for name, path in (("w1", "a.txt"), ("w2", "b.txt"), ("w3", "a.txt")):
            file = await spaces.stat(name, path)
            assert file is not None
            assert file.metadata == {"f": "w1"}
        assert [each.metadata for each in (await spaces.list(PLACE)).items] == [{"w": "w1"}] * 2
        assert [each.metadata for each in await spaces.history("w1", "a.txt")] == [{"f": "w1"}] * 2
        assert [each.message for each in (await spaces.log("w1")).items] == ["of w1"]
        snapshot = await spaces.get_snapshot("w1", 1)
        assert snapshot is not None
        assert snapshot.message == "of w1"
        await spaces.write("w1", "c.txt", "same")
        [difference] = await spaces.diff("w1", 1)
        assert difference.path == "c.txt"
        changed = await spaces.update_metadata("w1", {"w": "new"})
        assert changed.metadata == {"w": "new"}
    async with opening(tmp_path) as memory:  # nothing is encrypted any more, and the keys are there
        copied = await memory.workspaces.clone("w1", "w4", namespace=PLACE)
        assert copied.metadata == {"w": "new"}
        file = await memory.workspaces.stat("w4", "a.txt")
        assert file is not None
        assert file.metadata == {"f": "w1"}
        plain = await memory.workspaces.clone("w3", "w5", namespace="project:open")
        assert plain.files == 1


async def test_what_was_moved_or_cannot_be_opened_is_said(tmp_path: Path):
    async with opening(tmp_path, PLACE) as memory:
        for name in ("a1", "a2"):
            await begin(memory, name)
        await memory.sessions.create_session("s1", "desk", "alice")
        await memory.artifacts.save("s1", "x.txt", b"x", metadata={"open": True})
    reads: list[tuple[str, str, str, Callable[[mnemon.HybridMemoryService], Awaitable[object]]]] = [
        ("agents", "directives", "id = '{}'", lambda memory: memory.agents.get("a1")),
        ("agents", "role", "id = '{}'", lambda memory: memory.agents.list()),
        ("agent_cycles", "proposal", "cycle = 1 AND agent_id = '{}'", lambda memory: memory.agents.cycle("a1", 1)),
        ("agent_cycles", "summary", "cycle = 1 AND agent_id = '{}'", lambda memory: memory.agents.resume("a1")),
        ("workspaces", "metadata", "id = '{}'", lambda memory: memory.workspaces.get("a1")),
        ("workspace_files", "metadata", "workspace_id = '{}'", lambda memory: memory.workspaces.stat("a1", "a.txt")),
        ("workspace_snapshots", "message", "workspace_id = '{}'", lambda memory: memory.workspaces.log("a1")),
    ]
    async with opening(tmp_path, keys=()) as memory:
        for *_, read in reads:
            with pytest.raises(mnemon.KeyUnavailable, match="set encryption_keys"):
                await read(memory)
    async with opening(tmp_path, PLACE) as memory:
        store = parts_of(memory).store
        for table, column, where, read in reads:
            [(before,)] = await peek(store, f"SELECT {column} FROM {table} WHERE {where.format('a1')}")
            other = f"(SELECT {column} FROM {table} WHERE {where.format('a2')})"
            await plant(store, f"UPDATE {table} SET {column} = {other} WHERE {where.format('a1')}")
            with pytest.raises(mnemon.TamperedValue):
                await read(memory)
            await plant(store, f"UPDATE {table} SET {column} = :text WHERE {where.format('a1')}", text=before)
            await read(memory)


async def test_what_is_noted_of_an_artifact_is_sealed(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        for session, user in (("s1", "alice"), ("s2", "bob")):
            await memory.sessions.create_session(session, "desk", user)
            await memory.artifacts.save(session, "a.txt", b"1", metadata={"n": 1})
            await memory.artifacts.save(session, "a.txt", b"2", metadata={"n": 2})
            artifacts = memory.artifacts
            assert [each.metadata for each in (await artifacts.list(session)).items] == [{"n": 2}]
            assert [each.metadata for each in (await artifacts.versions(session, "a.txt")).items] == [
                {"n": 2}, {"n": 1},
            ]  # fmt: skip
            assert [each.metadata for each in await artifacts.recent(session)] == [{"n": 2}]
            told = await artifacts.manifest(session)
            assert [each["metadata"] for each in told["artifacts"][0]["versions"]] == [{"n": 1}, {"n": 2}]
        store = parts_of(memory).store
        assert await sealed_in(store, "artifacts") == {"metadata": 2}
        await plant(
            store,
            "UPDATE artifacts SET metadata = (SELECT metadata FROM artifacts WHERE id = 2) WHERE id = 1",
        )
        with pytest.raises(mnemon.TamperedValue):
            await memory.artifacts.get("s1", "a.txt", 1)
