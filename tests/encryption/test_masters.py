"""Master keys of this machine: how they are written down, and what they refuse."""

from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.encryption.masters import MasterKeys, keys_in_file, new_master_key
from mnemon.errors import InvalidSettings, KeyUnavailable, WrongKey
from mnemon.ports import Wrapped

OLD, NEW = new_master_key("2025"), new_master_key("2026")
SECRET = bytes(range(32))


def test_the_first_wraps_and_all_unwrap():
    wrapped = MasterKeys([OLD]).wrap(SECRET, b"here")
    both = MasterKeys([NEW, OLD])
    assert (both.current, both.unwrap(wrapped, b"here")) == ("2026", SECRET)
    assert both.wrap(SECRET, b"here").master_key == "2026"


def test_a_key_that_is_not_given_is_named():
    wrapped = MasterKeys([OLD]).wrap(SECRET, b"here")
    with pytest.raises(KeyUnavailable, match=r"'2025' is needed, and only 2026 is given"):
        MasterKeys([NEW]).unwrap(wrapped, b"here")


def test_another_key_of_that_name_is_refused():
    wrapped = MasterKeys([OLD]).wrap(SECRET, b"here")
    with pytest.raises(WrongKey, match="'2025' is not the one"):
        MasterKeys([new_master_key("2025")]).unwrap(wrapped, b"here")


@given(st.binary(), st.data())
def test_wrapped_keys_cannot_be_changed_or_moved(about: bytes, data: st.DataObject):
    keys = MasterKeys([OLD])
    wrapped = keys.wrap(SECRET, about)
    at = data.draw(st.integers(0, len(wrapped.body) - 1))
    flipped = bytes([*wrapped.body[:at], wrapped.body[at] ^ data.draw(st.integers(1, 255)), *wrapped.body[at + 1 :]])
    for body, place in ((flipped, about), (wrapped.body[:at], about), (wrapped.body, about + b"!")):
        with pytest.raises(WrongKey):
            keys.unwrap(Wrapped("2025", body), place)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cannot be read"),
        ("no-colon", "cannot be read"),
        ("a b:" + "A" * 43 + "=", "cannot be read"),
        ("k:" + b64encode(bytes(16)).decode(), "'k' has 16 bytes"),
        ("k:AAA", "'k' is not base64"),
    ],
)
def test_what_is_no_key_is_refused_without_showing_it(text: str, problem: str):
    with pytest.raises(InvalidSettings, match=problem) as caught:
        MasterKeys([text])
    assert len(text) < 8 or text not in str(caught.value)


def test_a_name_twice_and_no_key_are_refused():
    with pytest.raises(InvalidSettings, match="same name"):
        MasterKeys([OLD, new_master_key("2025")])
    with pytest.raises(InvalidSettings, match="no master key"):
        MasterKeys([])


def test_both_alphabets_of_base64_are_read():
    secret = bytes([251, 255] * 16)
    wrapped = MasterKeys([f"k:{b64encode(secret).decode()}"]).wrap(SECRET, b"")
    assert MasterKeys([f"k:{urlsafe_b64encode(secret).decode()}"]).unwrap(wrapped, b"") == SECRET


def test_keys_in_a_file(tmp_path: Path):
    file = tmp_path / "keys"
    file.write_text(f"# rotated in spring\n{NEW}\n\n  {OLD}  \n")
    assert keys_in_file(file) == [NEW, OLD]
    with pytest.raises(InvalidSettings, match="cannot be read"):
        keys_in_file(tmp_path / "none")
