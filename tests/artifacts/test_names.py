"""Names, folders and URLs, with whatever anybody may come up with."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import mnemon
from mnemon import sync
from mnemon.artifacts.names import check_name, content_type_of, file_name, parse_url, place_of, url_of
from mnemon.errors import InvalidIdentifier
from mnemon.namespaces import check_identifier
from mnemon.testing import QUIET

DEVICES = st.sampled_from(["CON", "nul", "Aux", "com1", "LPT9", "prn.txt", "COM¹"])
TRICKY = st.text(
    st.sampled_from('./\\:*?"<>|~ .%\0\n\r\t\u202e\u200b\u200d\ufeff／．‥…⁄∕＼ée\u0301ßẞıİKa1-_\ud800'), max_size=30
)
LONG = st.builds(lambda char, times: char * times, st.characters(), st.integers(200, 600))
NAMES = st.one_of(st.text(max_size=60), TRICKY, DEVICES, LONG, st.lists(TRICKY | DEVICES, max_size=5).map("/".join))


def is_session_id(text: str) -> bool:
    try:
        check_identifier("session_id", text)
    except InvalidIdentifier:
        return False
    return True


SESSIONS = st.one_of(st.text(min_size=1, max_size=60), TRICKY, DEVICES, LONG).filter(is_session_id)
SAFE_EVERYWHERE = set('<>:"/\\|?*')


def accepted(name: str) -> str | None:
    try:
        return check_name(name, 512)
    except InvalidIdentifier:
        return None


def assert_safe_in_any_file_system(name: str) -> None:
    assert 0 < len(name.encode()) <= 255
    assert not SAFE_EVERYWHERE & set(name)
    assert name not in (".", "..")
    assert name == name.strip()
    assert not name.endswith(".")
    assert not any(unicodedata.category(char)[0] in "CZ" and char != " " for char in name)
    stem = name.partition(".")[0].rstrip().upper()
    assert stem not in {"CON", "PRN", "AUX", "NUL", *(f"{kind}{n}" for kind in ("COM", "LPT") for n in range(10))}


@settings(max_examples=500)
@given(name=NAMES, number=st.integers(1, 20))
@example(name="a" * 300 + "." + "b" * 100, number=1)
@example(name="." * 5 + "x", number=2)
def test_what_is_accepted_has_a_file_name_that_is_safe_everywhere(name: str, number: int) -> None:
    named = accepted(name)
    if named is not None:
        assert_safe_in_any_file_system(file_name(named, 1_893_456_000_000_000, number))
        assert accepted(named) == named
        assert unicodedata.normalize("NFC", name) == named


@settings(max_examples=500)
@given(one=SESSIONS, other=SESSIONS)
@example(one="s1", other="S1")
@example(one="é", other="e\u0301")
@example(one="..", other="...")
@example(one="a.", other="a")
@example(one="PRN.0", other="nul.txt")
def test_sessions_have_folders_of_their_own_that_are_safe_everywhere(one: str, other: str) -> None:
    assert_safe_in_any_file_system(place_of(one))
    if one != other:
        assert place_of(one).casefold() != place_of(other).casefold()
        assert place_of(place_of(one)) != place_of(one) or place_of(one) == one


@settings(max_examples=500)
@given(session_id=SESSIONS, name=NAMES, version=st.integers(1, 2**63 - 1))
def test_urls_lead_back_to_what_they_are_of(session_id: str, name: str, version: int) -> None:
    named = accepted(name)
    if named is None:
        return
    url = url_of(session_id, named, version)
    assert parse_url(url, 512) == (session_id, named, version)
    assert url.isascii()
    assert url.isprintable()
    assert "/../" not in url
    assert "/./" not in url


@settings(max_examples=500)
@given(st.text(max_size=80) | TRICKY.map(lambda text: f"mnemon://artifacts/{text}"))
def test_no_url_does_harm(text: str) -> None:
    try:
        place = parse_url(text, 512)
    except mnemon.InvalidInput:
        return
    assert parse_url(url_of(place.session_id, place.name, place.version or 1), 512)[:2] == place[:2]


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(session_id=SESSIONS, name=NAMES, data=st.binary(max_size=50))
def test_nothing_is_written_outside_the_root_and_each_name_reads_back(
    tmp_path: Path, session_id: str, name: str, data: bytes
) -> None:
    root = tmp_path / "a" / "b" / "kept"
    root.mkdir(parents=True, exist_ok=True)
    with sync.open("sqlite://", content_url=f"file://{root}", **QUIET) as memory:
        memory.sessions.create_session(session_id, "app", "alice")
        outside = {path for path in everything_in(tmp_path) if not path.startswith("a/b/kept")}
        try:
            saved = memory.artifacts.save(session_id, name, data)
        except InvalidIdentifier:
            assert accepted(name) is None
            return
        assert {path for path in everything_in(tmp_path) if not path.startswith("a/b/kept")} == outside
        assert memory.artifacts.read(session_id, name) == data
        assert memory.artifacts.resolve(saved.url) == saved
        shown = root / "artifacts" / place_of(session_id) / saved.file_name
        assert shown.read_bytes() == data
        assert shown.parent.parent == root / "artifacts"
        assert (shown.parent / "manifest.json").exists()
        memory.artifacts.rebuild()
        assert shown.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "is_text", "expected"),
    [
        ("a.pdf", False, "application/pdf"),
        ("a/b.md", True, "text/markdown"),
        ("data.jsonl", False, "application/x-ndjson"),
        ("x.tar.gz", False, "application/gzip"),
        ("x.json.xz", False, "application/x-xz"),
        ("x.Z", False, "application/octet-stream"),
        ("notes", True, "text/plain; charset=utf-8"),
        ("blob", False, "application/octet-stream"),
        ("a.pdf/b", False, "application/octet-stream"),
    ],
)
def test_content_types_are_guessed_alike_everywhere(name: str, is_text: bool, expected: str) -> None:
    assert content_type_of(name, is_text) == expected
