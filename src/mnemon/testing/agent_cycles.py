"""The contract of `AgentService` for cycles: a proposal, and then its one result."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from mnemon.errors import (
    AgentNotFound,
    ConflictError,
    CycleNotFound,
    CyclePending,
    InvalidInput,
    InvalidStatus,
    InvalidValue,
    MnemonError,
    SessionNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Cycle
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.suite import Suite, journal_after, last_position, plant, refused, unchanged

PROPOSAL: dict[str, Any] = {
    "thoughts": {"text": "I need the figures", "reasoning": "the report has none", "plan": ["fetch", "write"]},
    "use_tool": {"name": "fetch", "arguments": {"url": "https://example.com/a"}},
    "use_tools": None,
    "raw_message": {"role": "assistant", "content": "…"},
}


class Dumped:
    """What pydantic's models can do."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return self._content


async def plant_agent(store: Store, clock: ManualClock, agent_id: str, **columns: Any) -> None:
    """An agent that no service made."""
    now = clock.now()
    row = {
        "id": agent_id, "namespace": f"app:agents:{agent_id}", "name": agent_id, "created_at": now, "updated_at": now,
        **columns,
    }  # fmt: skip
    marks = ", ".join(f":{name}" for name in row)
    await plant(store, f"INSERT INTO agents ({', '.join(row)}) VALUES ({marks})", **row)


async def plant_cycle(store: Store, clock: ManualClock, agent_id: str, number: int, **columns: Any) -> None:
    """A cycle that no service made; it was done, unless the columns say otherwise."""
    row: dict[str, Any] = {
        "agent_id": agent_id, "cycle": number, "proposal": '{"thoughts":"planted"}', "proposed_at": clock.now(),
        "status": "success", "result": f'{{"status":"success","outputs":{number}}}', "finished_at": clock.now(),
        **columns,
    }  # fmt: skip
    marks = ", ".join(f":{name}" for name in row)
    await plant(store, f"INSERT INTO agent_cycles ({', '.join(row)}) VALUES ({marks})", **row)
    await plant(store, "UPDATE agents SET cycle_count = :cycle WHERE id = :id", id=agent_id, cycle=number)


async def attempt(call: Callable[..., Awaitable[Cycle]], *args: Any, **options: Any) -> Cycle | MnemonError:
    """The cycle that the call gives, or why not."""
    try:
        return await call(*args, **options)
    except MnemonError as error:
        return error


class AgentCycleSuite(Suite):
    """Any backend must pass; override the fixture `memory`."""

    async def test_a_cycle_is_a_proposal_and_then_its_result(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.agents.create("a1", name="Scout")
        position = await last_position(store)

        cycle = await memory.agents.capture_proposal("a1", PROPOSAL, session_id="s1", task_id="t1", actor="me")

        assert (cycle.number, cycle.status, cycle.proposal, cycle.result) == (1, "proposed", PROPOSAL, None)
        assert (cycle.session_id, cycle.task_id, cycle.snapshot) == ("s1", "t1", None)
        assert (cycle.proposed_at, cycle.finished_at, cycle.undone_at) == (clock.moment, None, None)
        assert cycle.is_pending
        assert await memory.agents.cycle("a1", 1) == cycle

        later = clock.advance()
        done = await memory.agents.succeed("a1", 1, {"rows": [1, 2]}, artifacts=["mnemon://a"], summary="fetched")

        assert done == replace(
            cycle, status=done.status, result={"status": "success", "outputs": {"rows": [1, 2]}}, summary="fetched",
            artifacts=("mnemon://a",), finished_at=later,
        )  # fmt: skip
        assert (done.status, done.is_pending) == ("success", False)
        assert await memory.agents.cycle("a1", 1) == done
        assert await journal_after(store, position) == [
            ("cycle", "a1:1", "propose", None, "app:agents:a1"),
            ("cycle", "a1:1", "result", None, "app:agents:a1"),
        ]
        [result, proposal] = await memory.audit(entity="cycle")
        assert (proposal.actor, proposal.session_id, proposal.task_id) == ("me", "s1", "t1")
        assert (result.session_id, result.task_id) == ("s1", "t1")
        assert (proposal.payload, result.payload) == ({"cycle": 1}, {"cycle": 1, "status": "success"})

    async def test_every_shape_of_proposal_is_kept_as_it_is(self, memory: HybridMemoryService) -> None:
        await memory.agents.create("a1", name="Scout")
        dumped = Dumped({"thoughts": "dumped"})
        shapes: list[tuple[Any, Any]] = [
            (PROPOSAL, PROPOSAL),
            ({"thoughts": "alone"}, {"thoughts": "alone"}),
            ({"name": "old", "args": {}, "reasoning": "r"}, {"name": "old", "args": {}, "reasoning": "r"}),
            ("just a thought", {"thoughts": "just a thought"}),
            (dumped, {"thoughts": "dumped"}),
        ]
        for number, (given, kept) in enumerate(shapes, 1):
            cycle = await memory.agents.capture_proposal("a1", given)
            assert (cycle.number, cycle.proposal) == (number, kept)
            await memory.agents.succeed("a1", number)

    async def test_every_kind_of_result(self, memory: HybridMemoryService) -> None:
        await memory.agents.create("a1", name="Scout")

        async def finished(work: Callable[[int], Awaitable[Cycle]]) -> Any:
            number = (await memory.agents.capture_proposal("a1", PROPOSAL)).number
            cycle = await work(number)
            assert await memory.agents.cycle("a1", number) == cycle
            assert cycle.result is not None
            assert cycle.status == cycle.result["status"]
            return cycle.result

        agents = memory.agents
        assert await finished(lambda n: agents.succeed("a1", n)) == {"status": "success", "outputs": None}
        assert await finished(lambda n: agents.fail("a1", n, "no", {"code": 4})) == {
            "status": "error", "reason": "no", "error": {"code": 4},
        }  # fmt: skip
        told = await finished(lambda n: agents.fail("a1", n, RuntimeError("too slow", 9)))
        assert told["reason"] == "('too slow', 9)"
        assert (told["error"]["exception_type"], told["error"]["args"]) == ("RuntimeError", ["too slow", "9"])
        assert await finished(lambda n: agents.interrupt("a1", n, "not now")) == {
            "status": "interrupted_by_human", "feedback": "not now",
        }  # fmt: skip
        extra = {"status": "success", "outputs": [1], "seconds": 3}
        assert await finished(lambda n: agents.capture_result("a1", n, extra)) == extra
        dumped = Dumped({"status": "error", "reason": "no"})
        assert (await finished(lambda n: agents.capture_result("a1", n, dumped)))["reason"] == "no"
        assert (await finished(lambda n: agents.capture_result("a1", n, KeyError("k"))))["reason"] == "'k'"

    async def test_what_is_no_proposal_or_result_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        nothing: Any = {}
        for bad in (None, 5, nothing, "", {"x": b""}, {"n": float("nan")}):
            async with refused(store, InvalidValue, "proposal"):
                await memory.agents.capture_proposal("a1", bad)
        async with refused(store, SessionNotFound, "nobody"):
            await memory.agents.capture_proposal("a1", PROPOSAL, session_id="nobody")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        for bad in (None, 5, nothing, "done"):
            async with refused(store, InvalidValue, "result"):
                await memory.agents.capture_result("a1", 1, bad)
        for bad in ({"status": "proposed"}, {"outputs": 1}, {"status": ["success"]}):
            async with refused(store, InvalidStatus, "success, error, interrupted_by_human"):
                await memory.agents.capture_result("a1", 1, bad)
        for bad in ({"status": "error"}, {"status": "interrupted_by_human", "feedback": 5}):
            async with refused(store, InvalidValue, "as text"):
                await memory.agents.capture_result("a1", 1, bad)
        async with refused(store, InvalidInput, "artifact"):
            await memory.agents.succeed("a1", 1, artifacts=[5])
        async with refused(store, InvalidInput, "list"):
            await memory.agents.succeed("a1", 1, artifacts="mnemon://a")
        async with refused(store, InvalidValue, "summary"):
            await memory.agents.succeed("a1", 1, summary="nul\0")

    async def test_one_proposal_at_a_time(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.create("a2", name="Other")
        await memory.agents.capture_proposal("a1", PROPOSAL)

        async with refused(store, CyclePending, "cycle 1 of agent 'a1' has no result"):
            await memory.agents.capture_proposal("a1", {"thoughts": "another"})
        assert (await memory.agents.capture_proposal("a2", PROPOSAL)).number == 1
        await memory.agents.interrupt("a1", 1, "do something else")
        assert (await memory.agents.capture_proposal("a1", PROPOSAL)).number == 2

    async def test_a_proposal_is_refused_if_others_came_before(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL, expected_cycle=1)
        await memory.agents.succeed("a1", 1)
        for stale in (0, 1, 3):
            async with refused(store, ConflictError, f"is 2, not {stale}"):
                await memory.agents.capture_proposal("a1", PROPOSAL, expected_cycle=stale)
        assert (await memory.agents.capture_proposal("a1", PROPOSAL, expected_cycle=2)).number == 2

    async def test_of_many_who_propose_at_once_one_wins(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        await memory.agents.create("a1", name="Scout")
        for turn in range(1, 4):
            propose = partial(attempt, memory.agents.capture_proposal, "a1", PROPOSAL, expected_cycle=turn)
            answers = await crowd.gather([propose] * 6)
            [winner] = [each for each in answers if isinstance(each, Cycle)]
            assert winner.number == turn
            assert {type(each) for each in answers} - {Cycle} <= {CyclePending, ConflictError}
            assert await memory.agents.cycles("a1", last=1) == [winner]
            await memory.agents.succeed("a1", turn, turn)
        assert [each.result for each in await memory.agents.cycles("a1")] == [
            {"status": "success", "outputs": turn} for turn in range(1, 4)
        ]

    async def test_of_many_results_one_stands(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        works = [partial(attempt, memory.agents.succeed, "a1", 1, number) for number in range(6)]
        answers = await crowd.gather(works)
        [winner] = [each for each in answers if isinstance(each, Cycle)]
        assert sum(isinstance(each, ConflictError) for each in answers) == 5
        assert await memory.agents.cycle("a1", 1) == winner

    async def test_the_same_result_twice_is_one(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        told: dict[str, Any] = {"artifacts": ["mnemon://a"], "summary": "done"}
        done = await memory.agents.succeed("a1", 1, {"b": 1, "a": 2}, **told)
        clock.advance()

        async with unchanged(store):
            assert await memory.agents.succeed("a1", 1, {"a": 2, "b": 1}, **told) == done
            assert await memory.agents.succeed("a1", 1, {"a": 2, "b": 1}) == done
        others: list[Callable[[], Awaitable[object]]] = [
            lambda: memory.agents.succeed("a1", 1, {"a": 2}),
            lambda: memory.agents.succeed("a1", 1, {"b": 1, "a": 2}, artifacts=[]),
            lambda: memory.agents.succeed("a1", 1, {"b": 1, "a": 2}, summary="other"),
            lambda: memory.agents.fail("a1", 1, "no"),
            lambda: memory.agents.interrupt("a1", 1, "stop"),
        ]
        for other in others:
            async with refused(store, ConflictError, "another result: it is success"):
                await other()

    async def test_artifacts_are_named_by_what_saved_them(self, memory: HybridMemoryService) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        done = await memory.agents.succeed("a1", 1, artifacts=["x://1", SimpleNamespace(url="x://2")])
        assert done.artifacts == ("x://1", "x://2")

    async def test_a_summary_may_come_later(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        done = await memory.agents.succeed("a1", 1, "a long page")
        assert (await memory.agents.summarise("a1", 1, "a page", actor="me")).summary == "a page"
        again = await memory.agents.summarise("a1", 1, "short")
        assert again == replace(done, summary="short") == await memory.agents.cycle("a1", 1)
        assert (await journal_after(store))[-1] == ("cycle", "a1:1", "summarise", None, "app:agents:a1")
        async with refused(store, CycleNotFound, "no cycle 2"):
            await memory.agents.summarise("a1", 2, "x")

    async def test_cycles_are_listed_in_order(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await plant_agent(store, clock, "a1")
        for number in range(1, 8):
            await plant_cycle(
                store, clock, "a1", number, session_id="s1" if number % 2 else None,
                undone_at=clock.now() if number in (3, 4) else None,
            )  # fmt: skip

        async def listed(**wanted: Any) -> list[int]:
            return [each.number for each in await memory.agents.cycles("a1", **wanted)]

        assert await listed() == [1, 2, 5, 6, 7]
        assert await listed(include_undone=True) == [1, 2, 3, 4, 5, 6, 7]
        assert await listed(last=2) == [6, 7]
        assert await listed(last=2, before=6) == [2, 5]
        assert await listed(last=3, before=6, include_undone=True) == [3, 4, 5]
        assert await listed(session_id="s1") == [1, 5, 7]
        assert await listed(session_id="s1", include_undone=True, last=3) == [3, 5, 7]
        assert await listed(session_id="s2") == []
        await memory.sessions.delete_session("s1")
        assert await listed(session_id="s1") == []
        assert await listed() == [1, 2, 5, 6, 7]

    async def test_an_unknown_agent_is_not_found_by_any_method(self, memory: HybridMemoryService, store: Store) -> None:
        agents = memory.agents
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: agents.update("nobody", name="x"),
            lambda: agents.delete("nobody"),
            lambda: agents.capture_proposal("nobody", PROPOSAL),
            lambda: agents.succeed("nobody", 1),
            lambda: agents.summarise("nobody", 1, "x"),
            lambda: agents.record_memory("nobody", "x"),
            lambda: agents.recall("nobody", "x"),
            lambda: agents.cycle("nobody", 1),
            lambda: agents.cycles("nobody"),
            lambda: agents.resume("nobody"),
            lambda: agents.rewind("nobody", 0),
            lambda: agents.export_autogpt("nobody"),
        ]
        for call in calls:
            async with refused(store, AgentNotFound, "no agent 'nobody'"):
                await call()
        await agents.create("a1", name="Scout")
        for number in (-1, 2**63, "1", True, None):
            async with refused(store, InvalidInput, "a cycle's number"):
                await agents.succeed("a1", number)  # type: ignore[arg-type]
        async with refused(store, CycleNotFound, "no cycle 1"):
            await agents.succeed("a1", 1)
