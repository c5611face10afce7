"""Master keys that this machine holds itself, from the settings, the environment or a file.

Each has a name. The first wraps; the others only unwrap what they wrapped before, until that is wrapped anew.
"""

import binascii
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path

from mnemon.encryption.envelope import KEY_BYTES, cipher_of, decrypt, encrypt
from mnemon.errors import InvalidSettings, KeyUnavailable, WrongKey
from mnemon.ports import Wrapped

_KEY = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63}):([A-Za-z0-9+/=_-]+)")
_FORM = f"write NAME:KEY, the key being {KEY_BYTES} random bytes in base64, as `new_master_key` makes one"


class MasterKeys:
    """A `KeyProvider` of keys that are given as texts: `NAME:KEY`, the one that wraps first."""

    def __init__(self, texts: Iterable[str]) -> None:
        keys = [_read(text) for text in texts]
        if not keys:
            raise InvalidSettings(f"there is no master key; {_FORM}")
        self._ciphers = {name: cipher_of(secret) for name, secret in keys}
        if len(self._ciphers) < len(keys):
            raise InvalidSettings("two master keys have the same name; a new key needs a new name")
        self._current = keys[0][0]

    @property
    def current(self) -> str:
        return self._current

    def wrap(self, secret: bytes, about: bytes) -> Wrapped:
        return Wrapped(self._current, encrypt(self._ciphers[self._current], secret, about))

    def unwrap(self, wrapped: Wrapped, about: bytes) -> bytes:
        cipher = self._ciphers.get(wrapped.master_key)
        if cipher is None:
            names = ", ".join(self._ciphers)
            raise KeyUnavailable(
                f"the master key {wrapped.master_key!r} is needed, and only {names} is given; add it after the first"
            )
        try:
            return decrypt(cipher, wrapped.body, about)
        except ValueError:
            raise WrongKey(
                f"the master key that is given as {wrapped.master_key!r} is not the one that wrapped this data key, "
                "or the row of the data key was changed"
            ) from None


def load_keys(texts: Sequence[str], file: str | None) -> MasterKeys | None:
    """The keys that the settings give, those of the settings before those in the file; None if there are none."""
    given = [*texts, *(keys_in_file(Path(file)) if file else ())]
    return MasterKeys(given) if given or file else None


def new_master_key(name: str) -> str:
    """A new random key as it is given in the settings. Keep it well: what it wraps is lost without it."""
    text = f"{name}:{b64encode(os.urandom(KEY_BYTES)).decode()}"
    _read(text)
    return text


def keys_in_file(path: Path) -> Sequence[str]:
    """The keys in a file, one in each line; empty lines and those that begin with `#` are passed over."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"the master keys cannot be read from {path}: {type(error).__name__}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _read(text: str) -> tuple[str, bytes]:
    """Name and key. What is wrong is said without showing any of the key."""
    found = _KEY.fullmatch(text)
    if found is None:
        raise InvalidSettings(f"a master key cannot be read; {_FORM}")
    name, coded = found.groups()
    try:
        secret = b64decode(coded.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSettings(f"the master key {name!r} is not base64; {_FORM}") from None
    if len(secret) != KEY_BYTES:
        raise InvalidSettings(f"the master key {name!r} has {len(secret)} bytes, not {KEY_BYTES}; {_FORM}")
    return name, secret
