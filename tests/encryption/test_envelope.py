"""Sealed texts: they come back whole, or with a clear error."""

import json
import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.encryption.envelope import DataKey, Place, is_sealed, key_id_of
from mnemon.errors import InvalidSettings, TamperedValue, WrongKey

KEY = DataKey("k1", bytes(range(32)))
PLACE = Place("memory_entries", "value", "user:alice", "diet", 3)
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
PLACES = st.builds(Place, WORDS, WORDS, WORDS, WORDS, st.integers(1, 2**40))


@given(WORDS, PLACES)
def test_what_was_sealed_comes_back_and_is_json_meanwhile(text: str, place: Place):
    sealed = KEY.seal(text, place)
    assert KEY.open(sealed, place) == text
    assert isinstance(json.loads(sealed), str)
    assert is_sealed(sealed)
    assert key_id_of(sealed) == "k1"


@given(WORDS, PLACES, PLACES)
def test_it_opens_in_no_other_place(text: str, place: Place, other: Place):
    sealed = KEY.seal(text, place)
    if place != other:
        with pytest.raises(TamperedValue):
            KEY.open(sealed, other)


@pytest.mark.parametrize("part", Place._fields)
def test_each_part_of_the_place_counts(part: str):
    sealed = KEY.seal("text", PLACE)
    other = PLACE._replace(**{part: 4 if part == "version" else "another"})
    with pytest.raises(TamperedValue, match=re.escape(repr(other.key))):
        KEY.open(sealed, other)


def test_parts_of_the_place_do_not_run_together():
    sealed = KEY.seal("text", Place("t", "c", "user:a", "bc", 1))
    with pytest.raises(TamperedValue):
        KEY.open(sealed, Place("t", "c", "user:ab", "c", 1))


@given(WORDS, st.data())
def test_a_changed_character_is_noticed(text: str, data: st.DataObject):
    sealed = KEY.seal(text, PLACE)
    at = data.draw(st.integers(0, len(sealed) - 1))
    new = data.draw(st.characters(max_codepoint=127).filter(lambda char: char != sealed[at]))
    with pytest.raises((TamperedValue, WrongKey)):
        KEY.open(sealed[:at] + new + sealed[at + 1 :], PLACE)


def test_every_character_at_every_place_is_noticed():
    sealed = KEY.seal("four", PLACE)
    for at, char in enumerate(sealed):
        for new in 'AZaz09+/=:"\\ -_':
            if new != char:
                with pytest.raises((TamperedValue, WrongKey)):
                    KEY.open(sealed[:at] + new + sealed[at + 1 :], PLACE)


@given(WORDS)
def test_a_missing_piece_is_noticed(text: str):
    sealed = KEY.seal(text, PLACE)
    for end in range(len(sealed)):
        for cut in (sealed[:end], sealed[:end] + '"', sealed[end + 1 :], sealed[:end] + sealed[end + 1 :]):
            if cut != sealed:
                with pytest.raises((TamperedValue, WrongKey)):
                    KEY.open(cut, PLACE)


@given(WORDS, st.data())
def test_swapped_characters_are_noticed(text: str, data: st.DataObject):
    sealed = KEY.seal(text, PLACE)
    places = st.integers(0, len(sealed) - 1)
    one, two = sorted((data.draw(places), data.draw(places)))
    swapped = list(sealed)
    swapped[one], swapped[two] = swapped[two], swapped[one]
    if "".join(swapped) != sealed:
        with pytest.raises((TamperedValue, WrongKey)):
            KEY.open("".join(swapped), PLACE)


def test_another_key_of_the_same_name_is_refused_and_of_another_name_told():
    sealed = KEY.seal("text", PLACE)
    with pytest.raises(TamperedValue):
        DataKey("k1", bytes(32)).open(sealed, PLACE)
    with pytest.raises(WrongKey, match=r"'k1', not 'k2'"):
        DataKey("k2", KEY.secret).open(sealed, PLACE)


def test_a_key_given_another_name_does_not_open():
    renamed = KEY.seal("text", PLACE).replace(":k1:", ":k2:")
    with pytest.raises(TamperedValue):
        DataKey("k2", KEY.secret).open(renamed, PLACE)


def test_the_same_text_is_never_sealed_alike():
    assert len({KEY.seal("text", PLACE) for _ in range(100)}) == 100


@given(
    st.recursive(st.none() | WORDS | st.integers(-9, 9), lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner))
)
def test_no_value_of_ones_own_looks_sealed(value: object):
    assert not is_sealed(orjson.dumps(value).decode())


def test_not_even_one_that_tries_to():
    sealed = KEY.seal("text", PLACE)
    for value in (sealed, json.loads(sealed), sealed.strip('"')):
        assert not is_sealed(orjson.dumps(value).decode())


def test_nothing_of_the_text_or_key_shows():
    assert "secret text" not in KEY.seal("secret text", PLACE)
    assert "secret" not in repr(KEY)
    assert str(KEY.secret) not in repr(KEY)


def test_a_key_of_another_length_is_refused():
    with pytest.raises(InvalidSettings, match="32 bytes, not 16"):
        DataKey("short", bytes(16))
