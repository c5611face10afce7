"""Texts sealed with AES-256-GCM, each bound to the place that it stands in.

A sealed text is a JSON string, so that it fits wherever JSON text is kept: a marker, the id of its data key,
and the nonce and ciphertext in base64. The marker's first letter is written as an escape, which no encoder of
Mnemon's ever does, so that nobody's own value can be taken for a sealed one.
"""

import os
from base64 import b64encode
from binascii import a2b_base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import orjson

from mnemon.errors import InvalidSettings, TamperedValue, WrongKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
_MARK = '"\\u0073ealed:1:'


class Place(NamedTuple):
    """Where a sealed text stands; it cannot be opened anywhere else."""

    table: str
    column: str
    namespace: str
    key: str
    version: int


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key that seals texts. At most 2³² of them, so that no two have the same nonce: rotate it before."""

    id: str
    secret: bytes = field(repr=False)
    _cipher: "AESGCM" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cipher", cipher_of(self.secret))

    def seal(self, text: str, place: Place) -> str:
        """The text as a JSON string that tells nothing but its length, to whoever lacks the key."""
        body = encrypt(self._cipher, text.encode(), _about(self.id, place))
        return f'{_MARK}{self.id}:{b64encode(body).decode()}"'

    def open(self, sealed: str, place: Place) -> str:
        """What was sealed; `TamperedValue` if any byte of it was changed, or if it was sealed for another place."""
        key_id, body = _parts(sealed)
        if key_id != self.id:
            raise WrongKey(f"{_told(place)} is sealed by the data key {key_id!r}, not {self.id!r}")
        try:
            return decrypt(self._cipher, body, _about(key_id, place)).decode()
        except ValueError:
            raise TamperedValue(f"{_told(place)} was changed after it was sealed, or belongs elsewhere") from None


def is_sealed(text: str) -> bool:
    """Whether it is a sealed text, rather than a value's own JSON."""
    return text.startswith(_MARK)


def key_id_of(sealed: str) -> str:
    """The id of the data key that opens it, if it is what it seems to be."""
    return sealed[len(_MARK) : -1].partition(":")[0]


def encrypt(cipher: "AESGCM", plain: bytes, about: bytes) -> bytes:
    """A new nonce and the ciphertext, which can be opened only together with the very same `about`."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, plain, about)


def decrypt(cipher: "AESGCM", body: bytes, about: bytes) -> bytes:
    """What was encrypted; `ValueError` if that was another body, key or `about`."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only for those who encrypt

    if len(body) < _NONCE_BYTES + _TAG_BYTES:
        raise ValueError("too short")
    try:
        return cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], about)
    except InvalidTag:
        raise ValueError("another key, or changed") from None


def cipher_of(secret: bytes) -> "AESGCM":
    """The cipher of a key of 256 bits."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only for those who encrypt
    except ImportError:
        raise InvalidSettings("encryption needs the package cryptography: pip install 'mnemon[encryption]'") from None
    if len(secret) != KEY_BYTES:
        raise InvalidSettings(f"a key has {KEY_BYTES} bytes, not {len(secret)}")
    return AESGCM(secret)


def _parts(sealed: str) -> tuple[str, bytes]:
    """The id of the key, and nonce and ciphertext. Only what `seal` could have written is taken."""
    key_id, _, coded = sealed[len(_MARK) : -1].partition(":")
    try:
        body = a2b_base64(coded, strict_mode=True)
    except ValueError:
        body = b""
    if not (is_sealed(sealed) and sealed[-1] == '"' and key_id and body and _ends_alike(body, coded)):
        raise TamperedValue(f"{sealed[:60]!r} is not a sealed text, or a part of it is missing")
    return key_id, body


def _ends_alike(body: bytes, coded: str) -> bool:
    """Whether base64 would end so: its last letter has bits that are not read, which must not be others either."""
    return b64encode(body[-(len(body) % 3 or 3) :]).decode() == coded[-4:]


def _about(key_id: str, place: Place) -> bytes:
    return orjson.dumps(["mnemon", 1, key_id, *place])


def _told(place: Place) -> str:
    return f"{place.column} of {place.key!r} version {place.version} in {place.namespace!r} ({place.table})"
