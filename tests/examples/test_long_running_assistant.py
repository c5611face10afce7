"""The assistant of thirty days, run as a user would: corrections win, nothing is lost or doubled, policies are kept."""

import json
import os
import random
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon.sync import BlockingMemory
from mnemon.sync import open as open_memory
from tests.language import endpoint as endpoints

EXAMPLE = Path(__file__).parents[2] / "examples" / "long_running_assistant.py"
PATIENCE = 180.0  # seconds
DAYS = 30
FEW = 14  # days after which something was corrected and something is archived
SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)

Run = Callable[..., tuple[int, str, str]]
Outcome = Callable[..., dict[str, Any]]

FACTS = [
    "ann is allergic to peanuts.", "ann is allergic to shellfish.", "ann lives in Oslo.", "ann works for Initech.",
    "ann's diet is vegan.", "ann's dog is Rex.", "ann's favourite drink is tea.", "ann's favourite food is ramen.",
    "ann's phone is 555 0142.",
]  # fmt: skip
GIVEN_UP = {
    "ann's phone is 555 0199.": "ann's phone is 555 0142.",
    "ann lives in Bergen.": "ann lives in Oslo.",
    "ann's diet is vegetarian.": "ann's diet is vegan.",
    "ann works for Acme.": "ann works for Initech.",
}


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MNEMON_CONTENT_URL", f"file://{tmp_path}/contents")
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/ann.db"


def command(url: str, *options: str) -> list[str]:
    return [sys.executable, str(EXAMPLE), "--url", url, *options]


@pytest.fixture
def run(url: str, example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs it in this process: its exit code, what it said, and what it complained of."""

    def main(*options: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = example["main"](["--url", url, *options])
        return code, *capsys.readouterr()

    return main


@pytest.fixture
def outcome(run: Run) -> Outcome:
    """What a run that goes well comes to."""

    def main(*options: str) -> dict[str, Any]:
        code, said, complaint = run("--json", *options)
        assert (code, complaint) == (0, "")
        return json.loads(said)

    return main


@contextmanager
def remembered(url: str, example: dict[str, Any]) -> Iterator[BlockingMemory]:
    """The memory as the last run left it, at that time."""
    clock = example["JumpingClock"]()
    with open_memory(url, clock=clock, background=False, retention=example["POLICIES"]) as memory:
        clock.shows = memory.state.get("app:lived", app_name="assistant")["until"]
        yield memory


def assert_end(found: dict[str, Any], url: str, example: dict[str, Any], days: int = DAYS) -> None:
    """What has to be so after the days, however they were lived: as the example tells it, and as the library does."""
    with remembered(url, example) as memory:
        if days == DAYS:
            assert found["facts"] == FACTS
            assert found["given_up"] == GIVEN_UP
            assert set(found["answers"].values()) == set(GIVEN_UP.values())
            assert_facts(memory)
        assert_exactly_once(memory, days)
        assert_within_policies(memory, found["days"][-1])


def assert_facts(memory: BlockingMemory) -> None:
    kept = memory.memories.search_memories("user:ann:facts", limit=100)
    assert sorted(each.value for each in kept) == FACTS
    hits = memory.recall("Where do I live?", namespaces="user:ann:facts")
    assert hits[0].memory.value == "ann lives in Oslo."
    assert not set(GIVEN_UP) & {hit.memory.value for hit in hits}
    gone = [
        change.entity_id
        for change in memory.changes(entity="memory", namespace="user:ann:facts")
        if change.operation == "delete"
    ]
    histories = {}
    for key in gone:
        said, deleted = memory.memories.get_memory_history("user:ann:facts", key)
        assert deleted.is_deleted
        heir = memory.memories.get_memory("user:ann:facts", deleted.metadata["superseded_by"]["key"])
        assert heir is not None
        histories[said.value] = heir.value
    assert histories == GIVEN_UP


def assert_exactly_once(memory: BlockingMemory, days: int) -> None:
    """Every turn went into one episode, and every episode became one summary."""
    changes = list(memory.changes())
    counts = Counter((change.entity, change.operation) for change in changes)
    appended = Counter(
        change.session_id for change in changes if change.entity == "buffer" and change.operation == "append"
    )
    drained = {
        change.session_id: change.payload["count"]
        for change in changes
        if change.entity == "buffer" and change.operation == "acknowledge"
    }
    assert appended == drained
    assert len(drained) == days
    assert counts["episode", "consolidate"] == days
    summaries = Counter(
        change.entity_id for change in changes if change.entity == "memory" and change.operation == "add"
        and change.namespace == "user:ann:episodes"
    )  # fmt: skip
    assert len(summaries) == days
    assert set(summaries.values()) == {1}
    for episode in memory.episodes.list(namespace="user:ann"):
        assert episode.session_id is not None
        assert [entry.value["role"] for entry in episode.entries[:2]] == ["user", "assistant"]
        assert len(episode.entries) == drained[episode.session_id]


def assert_within_policies(memory: BlockingMemory, last: dict[str, int]) -> None:
    plan = memory.retention.plan()
    assert plan.actions == ()
    [turns] = [use for use in plan.policies if use.policy == "turns"]
    assert turns.size <= 4000
    episodes = memory.episodes.list(namespace="user:ann")
    assert {each.status for each in episodes} == {mnemon.EpisodeStatus.CONSOLIDATED}
    assert (plan.at - min(each.ended_at for each in episodes)).days <= 14
    archives = memory.retention.archives(limit=200)
    assert sum(each.memories for each in archives) == last["archived"] > 0


def test_thirty_days_end_with_what_is_true(url: str, example: dict[str, Any], outcome: Outcome) -> None:
    done = subprocess.run(command(url, "--json"), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert_end(found, url, example)
    days = found["days"]
    assert [day["day"] for day in days] == list(range(1, DAYS + 1))
    assert max(day["sessions"] for day in days) == 14
    assert max(day["episodes"] for day in days) == 15
    assert [day["archived"] for day in days] == sorted(day["archived"] for day in days)
    assert days[-1]["archived"] > 200

    again = outcome()  # there is nothing left to live
    assert again == {**found, "days": [days[-1]]}


@SQLITE
def test_it_goes_on_where_it_was(url: str, example: dict[str, Any], run: Run, outcome: Outcome) -> None:
    before = outcome("--days", "11")
    assert "ann lives in Bergen." in before["facts"]
    assert before["answers"]["Where do I live?"] == "ann lives in Bergen."
    assert list(before["given_up"]) == ["ann's phone is 555 0199."]
    after = outcome("--days", str(FEW))
    assert [day["day"] for day in after["days"]] == [12, 13, 14]
    assert after["answers"]["Where do I live?"] == "ann lives in Oslo."
    assert set(after["facts"]) - set(before["facts"]) == {"ann lives in Oslo."}
    assert_end(after, url, example, FEW)

    code, _, complaint = run("--seed", "2")
    assert (code, "begun with --seed 1" in complaint) == (1, True)


@SQLITE
def test_killed_at_any_time_it_does_nothing_twice(url: str, example: dict[str, Any], outcome: Outcome) -> None:
    chance = random.Random(5)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    for day in (3, 8):
        with subprocess.Popen(command(url), stdout=subprocess.PIPE, env=environment, text=True) as child:
            assert child.stdout is not None
            assert any(line.startswith(f"day {day:2}") for line in child.stdout)
            time.sleep(chance.uniform(0, 0.1))  # somewhere in one of the next days
            child.kill()
    assert_end(outcome("--days", str(FEW)), url, example, FEW)


@SQLITE
def test_it_complains_if_an_old_fact_is_back(url: str, example: dict[str, Any], run: Run) -> None:
    assert run("--days", "6")[0] == 0
    with remembered(url, example) as memory:
        [old] = [change.entity_id for change in memory.changes(entity="memory") if change.operation == "delete"]
        memory.memories.restore_memory("user:ann:facts", old)
    code, _, complaint = run("--days", "6")
    assert code == 1
    assert 'known should be "ann\'s phone is 555 0142." and not "ann\'s phone is 555 0199."' in complaint


@SQLITE
def test_it_tells_a_story_and_draws_it(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "days.png"
    code, story, complaint = run("--days", "6", "--plot", str(picture))
    assert (code, complaint) == (0, "")
    assert "learnt: ann's phone is 555 0142. No longer: ann's phone is 555 0199." in story
    assert "kilobytes\n" in story
    assert "What is my phone number? → ann's phone is 555 0142." in story
    assert picture.read_bytes().startswith(b"\x89PNG")


@SQLITE
def test_with_a_language_model_it_learns_what_that_finds_too(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoints.running() as endpoint:
        monkeypatch.setenv("MNEMON_OLLAMA_URL", endpoint.url)
        sister = {"subject": "sister", "attribute": "home", "value": "Rome", "source": "s3"}
        for day in range(1, 8):
            endpoint.say({"summary": f"They talked on day {day}.", "facts": [sister] if day == 7 else []})
        found = outcome("--days", "7", "--language-model", "ollama:tiny")
        assert len(endpoint.requests) == 7
    assert {"ann lives in Bergen.", "sister lives in Rome."} <= set(found["facts"])
