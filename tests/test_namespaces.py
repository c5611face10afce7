"""Namespaces are paths of whole segments, in Python and in the queries of every backend."""

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mnemon.errors import InvalidIdentifier, InvalidNamespace
from mnemon.namespaces import (
    ROOTS,
    check_identifier,
    check_key,
    check_label,
    check_namespace,
    check_prefix,
    covers,
    meet,
)
from mnemon.sync import BlockingMemory
from tests.conformance.backends import blocking_memory

__all__ = ["blocking_memory"]

RUNS = count()

# Few and short, so that one is often the beginning of another; ';' sorts right after ':', the digits right before.
segments = st.sampled_from(["a", "al", "alice", "1", "10", "a;", "a-b", "é", "a b"])
paths = st.builds(lambda root, rest: ":".join([root, *rest]), st.sampled_from(ROOTS), st.lists(segments, max_size=3))
prefixes = st.just("") | paths


def is_below(prefix: str, namespace: str) -> bool:
    """The meaning of a prefix, segment by segment."""
    wanted = prefix.split(":") if prefix else []
    return namespace.split(":")[: len(wanted)] == wanted


@given(prefixes, paths)
@example("user:al", "user:alice")
@example("user:1", "user:10")
@example("user:a", "user:a;:x")
def test_a_prefix_covers_whole_segments(prefix: str, namespace: str) -> None:
    assert covers(prefix, namespace) == is_below(prefix, namespace)


@given(prefixes, st.lists(prefixes, max_size=5), paths)
@example("", ["user:a", "user:a:b"], "user:a:b")
def test_two_sets_of_prefixes_meet_in_what_lies_below_both(requested: str, granted: list[str], namespace: str) -> None:
    parts = meet(requested, granted)

    wanted = is_below(requested, namespace) and any(is_below(grant, namespace) for grant in granted)
    assert any(is_below(part, namespace) for part in parts) == wanted
    assert parts == sorted(set(parts))
    assert not [(p, q) for p in parts for q in parts if p != q and is_below(p, q)]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(below=st.lists(st.lists(segments, max_size=2), min_size=1, max_size=8), wanted=st.lists(segments, max_size=2))
def test_a_search_finds_what_its_prefix_covers(
    blocking_memory: BlockingMemory, below: list[list[str]], wanted: list[str]
) -> None:
    root = f"user:{next(RUNS)}"
    namespaces = sorted({":".join([root, *path]) for path in below})
    for namespace in namespaces:
        blocking_memory.memories.add_memory(namespace, "k", 1)
    prefix = ":".join([root, *wanted])

    found = blocking_memory.memories.search_memories(prefix)
    recent = blocking_memory.memories.search_memories(prefix, order="recent")
    listed = blocking_memory.memories.list_namespaces(prefix)
    told = blocking_memory.audit(namespace=prefix)

    expected = [namespace for namespace in namespaces if is_below(prefix, namespace)]
    assert [memory.namespace for memory in found] == expected
    assert sorted(memory.namespace for memory in recent) == expected
    assert [counted.namespace for counted in listed] == expected
    assert sorted(str(change.namespace) for change in told) == expected


@pytest.mark.parametrize(
    "namespace", ["user:alice", "temp:x", "session:s:1", "app:a b", "project:é:\U0001f600", "user:" + "x" * 256]
)
def test_a_namespace_is_a_root_and_what_lies_below(namespace: str) -> None:
    assert check_namespace(namespace, 1024) == namespace
    assert check_prefix(namespace, 1024) == namespace
    assert check_prefix(f"{namespace}:", 1024) == namespace


BAD_NAMESPACES: list[tuple[Any, str]] = [
    ("", "must be a root and at least one segment"),
    ("user", "must be a root and at least one segment"),
    ("user:", "must be a root and at least one segment"),
    ("user:alice:", "must be a root and at least one segment"),
    ("alice", "must begin with one of temp, session, user, app, project"),
    ("User:alice", "must begin with one of"),
    ("users:alice", "must begin with one of"),
    (" user:alice", "must begin with one of"),
    (":user", "must begin with one of"),
    ("user::alice", "a segment that is empty"),
    ("user:alice::", "a segment that is empty"),
    ("user: alice", "white space"),
    ("user:alice :x", "white space"),
    ("user:a\tb", "segment"),
    ("user:a\0b", "segment"),
    ("user:\ud800", "segment"),
    ("user:\U0010ffff", "segment"),
    ("user:" + "x" * 257, "too long"),
    ("user:" + "ab:" * 400 + "x", "has 1206 characters; at most 1024"),
    (None, "a namespace is a string, not None"),
    (5, "a namespace is a string, not 5"),
    (b"user:a", "a namespace is a string"),
]


@pytest.mark.parametrize(("namespace", "message"), BAD_NAMESPACES)
def test_what_is_no_namespace_is_refused(namespace: Any, message: str) -> None:
    with pytest.raises(InvalidNamespace, match=message) as caught:
        check_namespace(namespace, 1024)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("prefix", "path"), [("", ""), (":", ""), ("user", "user"), ("user:", "user"), ("app:a:b:", "app:a:b")]
)
def test_a_prefix_may_be_a_root_or_everything(prefix: str, path: str) -> None:
    assert check_prefix(prefix, 1024) == path


@pytest.mark.parametrize("value", ["a", "a b", "é", "x" * 256, "a;b", "#1", "'; DROP TABLE sessions --"])
def test_an_identifier_is_one_segment(value: str) -> None:
    assert check_identifier("session_id", value) == value


@pytest.mark.parametrize("value", ["", "a:b", " a", "a ", "\n", "a\x00", "a\x7f", "\ud800", "x" * 257, None, 5, b"a"])
def test_what_cannot_be_one_segment_is_no_identifier(value: Any) -> None:
    with pytest.raises(InvalidIdentifier, match="session_id"):
        check_identifier("session_id", value)


@pytest.mark.parametrize("value", ["", "a\nb", "\x00", "\ud800", "\U0010ffff", "x" * 11, None, 5])
def test_what_cannot_be_printed_or_is_too_long_is_no_key(value: Any) -> None:
    with pytest.raises(InvalidIdentifier, match="a key"):
        check_key("a key", value, 10)


def test_a_key_may_have_anything_else() -> None:
    assert check_key("a key", " a:b é ", 10) == " a:b é "


def test_a_label_may_be_missing_but_not_strange() -> None:
    strange: Any = 5
    assert check_label("the actor", None) is None
    assert check_label("the actor", "bot 7") == "bot 7"
    for bad in ("", "a\nb", "x" * 257, strange):
        with pytest.raises(InvalidIdentifier, match="the actor"):
            check_label("the actor", bad)
