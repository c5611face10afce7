"""Remembering, recalling, packing and forgetting from the command line."""

import json
from pathlib import Path

import pytest

from mnemon import sync
from tests.cli.conftest import Ask, Run

OSLO = ("remember", "Alice lives in Oslo", "--namespace", "user:alice", "--key", "city")


def test_what_was_remembered_is_recalled(run: Run, ask: Ask) -> None:
    first = run(*OSLO)
    assert (first.exit_code, first.stdout) == (0, "user:alice/city  version 1\n")
    again = ask("remember", "Alice lives in Bergen", "-n", "user:alice", "--key", "city")
    assert (again["version"], again["value"]) == (2, "Alice lives in Bergen")
    [hit] = ask("recall", "where does Alice live?", "-n", "user:alice")
    assert hit["memory"]["value"] == "Alice lives in Bergen"
    assert hit["memory"]["key"] == "city"
    assert hit["signals"] == {}


def test_every_option_of_remember_arrives(ask: Ask) -> None:
    found = ask(
        "remember", "The deployment failed", "-n", "project:web", "--type", "episodic", "--author", "bob",
        "--thread", "run-7", "--position", "3", "--occurred-at", "2026-01-02T10:00:00+01:00",
        "--importance", "0.75", "--trust", "0.25", "--metadata", '{"env": "test"}',
    )  # fmt: skip
    assert found["memory_type"] == "episodic"
    assert found["metadata"] == {"env": "test"}
    assert found["provenance"] | {"author": "bob", "trust": 0.25, "importance": 0.75} == found["provenance"]
    assert (found["placement"]["thread"], found["placement"]["position"]) == ("run-7", 3)
    assert found["placement"]["occurred_at"] == "2026-01-02T09:00:00+00:00"


def test_lines_are_remembered_by_the_name_of_their_file(ask: Ask, folder: Path) -> None:
    (folder / "a.txt").write_text('Tea is hot\n\n{"this": "is text"}\n')
    (folder / "b.jsonl").write_text(
        '{"text": "Bob drinks tea", "namespace": "user:bob", "key": "drink", "occurred_at": "2026-01-02"}\n'
        '{"value": {"city": "Oslo"}, "trust": 0.5}\n"plain"\n'
    )
    assert ask("remember", "--file", "a.txt", "-n", "app:notes")["remembered"] == 2
    stored = ask("remember", "--file", "b.jsonl", "-n", "app:notes", "--author", "bob", "--trust", "0.9")
    assert (stored["remembered"], stored["memories"][0]) == (3, {"namespace": "user:bob", "key": "drink", "version": 1})
    lines = '{"text": "One"}\nTwo\n'
    assert ask("remember", "--file", "-", "-n", "app:stdin", input=lines)["remembered"] == 2
    with sync.open() as memory:
        found = {json.dumps(each.value): each for each in memory.memories.search_memories()}
    assert found.keys() == {
        '"Tea is hot"', '"{\\"this\\": \\"is text\\"}"', '"Bob drinks tea"', '{"city": "Oslo"}', '"plain"',
        '"One"', '"Two"',
    }  # fmt: skip
    assert found['{"city": "Oslo"}'].provenance.trust == 0.5
    assert found['"plain"'].provenance.trust == 0.9
    when = found['"Bob drinks tea"'].placement.occurred_at
    assert when is not None
    assert when.isoformat() == "2026-01-02T00:00:00+00:00"


def test_a_bad_line_is_named_and_what_was_before_it_stays(run: Run, ask: Ask, folder: Path) -> None:
    lines = [f"note {number}" for number in range(200)] + ["fine", '{"text": "x", "colour": "red"}']
    result = run("remember", "--file", "-", "-n", "app:notes", input="\n".join(lines))
    assert result.exit_code == 2
    assert "line 202: " in result.stderr
    assert "'colour'; remembered before that: 200 memories" in result.stderr
    bad = run("remember", "--file", "-", "-n", "nowhere", input="one\ntwo\n")
    assert (bad.exit_code, "lines 1 to 2: namespace 'nowhere'" in bad.stderr) == (2, True)
    assert sum(each["namespace"] == "app:notes" for each in _all(folder)) == 200


def _all(folder: Path) -> list[dict[str, str]]:
    with sync.open(f"sqlite:///{folder}/mnemon.db") as memory:
        return [{"namespace": each.namespace} for each in memory.memories.search_memories(limit=1000)]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("remember", "-n", "user:a"), "either TEXT or --file"),
        (("remember", "x", "--file", "-", "-n", "user:a"), "either TEXT or --file"),
        (("remember", "x"), "--namespace"),
        (("remember", "--file", "-", "-n", "user:a", "--key", "k"), "--key is for one memory"),
        (("remember", "x", "-n", "planet:mars"), "namespace 'planet:mars' must begin with"),
        (("remember", "x", "-n", "user:a", "--trust", "7"), "trust"),
        (("remember", "x", "-n", "user:a", "--type", "vague"), "vague"),
        (("remember", "x", "-n", "user:a", "--metadata", "[1]"), "not a JSON object"),
        (("remember", "x", "-n", "user:a", "--metadata", "{"), "not JSON"),
        (("remember", "x", "-n", "user:a", "--occurred-at", "soon"), "not a moment"),
        (("remember", "x", "-n", "user:a", "--set", "background"), "--set takes name=value"),
        (("remember", "x", "-n", "user:a", "--set", "colour=red"), "unknown setting colour"),
        (("remember", "x", "-n", "user:a", "--set", "pool_size=many"), "pool_size"),
        (("remember", "x", "-n", "user:a", "--url", "mysql://db"), "a URL should begin with sqlite:"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_recall_filters_and_explains(run: Run, ask: Ask) -> None:
    lines = [
        {"text": f"The deployment {number} failed", "metadata": {"number": number}, "trust": number / 10}
        for number in range(6)
    ]
    ask("remember", "-f", "-", "-n", "project:web", input="\n".join(map(json.dumps, lines)))
    search = ("recall", "which deployment failed?", "-n", "project:web")
    assert len(ask(*search)) == 6
    assert len(ask(*search, "-k", "2", "--offset", "5")) == 1
    assert ask(*search, "--type", "procedural") == []
    assert ask(*search, "--as-of", "2020-01-01") == []
    assert {hit["memory"]["metadata"]["number"] for hit in ask(*search, "--min-trust", "0.35")} == {4, 5}
    [hit] = ask(*search, "--where", '{"number": 3}', "--explain")
    assert hit["score"] == pytest.approx(sum(hit["signals"].values()))
    table = run(*search, "--explain", "-k", "1").stdout.splitlines()
    assert table[0].split() == ["score", "memory", "text"]
    assert "found by" in table[2]
    nothing = run("recall", "x", "-n", "user:nobody")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "nothing was found\n")


def test_a_table_fits_the_terminal_and_obeys_no_text(run: Run) -> None:
    run("remember", "Oslo \x1b[31mis\x1b[0m\na city " + "far away " * 30, "-n", "user:alice", "--key", "city")
    row = run("recall", "Oslo", "-n", "user:alice", env={"COLUMNS": "60"}, color=True).stdout.splitlines()[1]
    assert len(row) == 60
    assert row.endswith("…")
    assert "Oslo [31mis [0m a city" in row


def test_options_may_stand_before_the_command_and_come_from_the_environment(run: Run, ask: Ask, folder: Path) -> None:
    run("--url", "sqlite:///other.db", "--set", "embedder=none", *OSLO)
    assert (folder / "other.db").exists()
    assert not (folder / "mnemon.db").exists()
    found = ask("recall", "Oslo", "-n", "", env={"MNEMON_URL": "sqlite:///other.db"})
    assert [hit["memory"]["key"] for hit in found] == ["city"]
    assert "vectors:mirror" not in found[0]["found_by"]


def test_a_context_is_text_messages_or_all_of_it(run: Run, ask: Ask) -> None:
    run(*OSLO)
    with sync.open() as memory:
        memory.sessions.create_session("s1", app_name="helpdesk", user_id="alice")
        memory.sessions.append_event("s1", {"role": "user", "text": "Good morning"})
    search = ("context", "where does Alice live?", "--session", "s1", "--budget", "300")
    text = run(*search).stdout
    assert "[m1]" in text
    assert "Alice lives in Oslo" in text
    assert "Good morning" in text
    whole = ask(*search)
    assert whole["text"] == text.removesuffix("\n")
    assert whole["messages"] == json.loads(run(*search, "--messages").stdout)
    assert whole["messages"][-1] == {"role": "user", "content": "Good morning"}
    assert 0 < whole["tokens"] <= 300
    assert ask(*search, "-n", "user:nobody")["citations"] == []
    assert run("context", "x", "--session", "s2").exit_code == 1
    assert run("context", "x", "--budget", "0").exit_code == 2


def test_forgetting_much_or_for_good_needs_a_yes(run: Run, ask: Ask) -> None:
    ask("remember", "-f", "-", "-n", "user:alice", input='{"text": "One", "key": "1"}\n{"text": "Two", "key": "2"}\n')
    for arguments in (("forget", "user:alice"), ("forget", "user:alice", "1", "--erase")):
        refused = run(*arguments, input="y\n")
        assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert len(ask("recall", "One Two", "-n", "user:alice")) == 2
    assert ask("forget", "user:alice", "1") == {"forgotten": 1, "erased": False}
    assert ask("forget", "user:alice") == {"forgotten": 1, "erased": False}
    assert run("forget", "user:alice").stdout == "forgot 0\n"
    assert run("forget", "user:alice", "3").exit_code == 1
    assert ask("forget", "user:alice", "2", "--erase", "--yes") == {"forgotten": 1, "erased": True}
    with sync.open() as memory:
        assert len(memory.memories.get_memory_history("user:alice", "1")) == 2
        assert memory.memories.get_memory_history("user:alice", "2") == []
        memory.store_episode(["I live in Oslo."], namespace="user:alice:talks")
    refused = run("forget", "user:alice:talks", "--erase")
    assert (refused.exit_code, "erase 0 memories and 1 episode at and below" in refused.stderr) == (2, True)
    assert ask("forget", "user:alice:talks", "--erase", "--yes") == {"forgotten": 1, "erased": True}


@pytest.mark.parametrize(
    "arguments",
    [
        ("recall", "x", "-n", "user:a"), ("context", "x"), ("forget", "user:a", "--yes"), ("index", "status"),
        ("index", "verify"), ("index", "rebuild"), ("index", "reembed", "onnx"), ("index", "settle"),
    ],
)  # fmt: skip
def test_only_remember_makes_a_database(run: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("Error: there is no database at mnemon.db")
    assert list(folder.iterdir()) == []


def test_a_server_that_is_not_there_is_exit_code_3(run: Run) -> None:
    result = run("index", "status", "--url", "postgresql://127.0.0.1:1/nothing")
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1
