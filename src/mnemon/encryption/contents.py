"""Contents of any size, sealed in chunks, each bound to its place in the one content that it belongs to.

A sealed content has a name of its own kind: what is to be known of it, its digest and size, encrypted in a way that
the same content gets the same name again from the same data key (AES-SIV), and the id of that key. So whoever lacks
the key cannot tell what a content is, nor try guesses.

    chunk 0 … chunk n     64 kB each, AES-256-GCM; the nonce is the chunk's number, and whether it is the last
    the end               a mark, a salt, and a tag that binds the salt to the name

Every content is encrypted by a key of its own, derived from the data key and the salt. Chunks that are left out, put
elsewhere, or belong to another content are refused, wherever reading begins.
"""

import re
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from os import urandom
from typing import TYPE_CHECKING

from mnemon.encryption.envelope import KEY_BYTES, DataKey, cipher_of
from mnemon.errors import ContentCorrupt
from mnemon.model import Content

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

CHUNK = 1 << 16
_TAG = 16
_SALT = 32
_MARK = b"mnemon1\n"
_END = len(_MARK) + _SALT + _TAG
_END_NONCE = b"\xff" * 12
_NAME = re.compile(r"([0-9a-f]{112})\.([0-9A-Za-z_-]{1,64})")

Reading = Callable[[int], Iterator[bytes]]
"""How the sealed bytes are read, from one of them on."""


def is_sealed_name(name: str) -> bool:
    """Whether it is the name of a sealed content, and not the digest of a plain one."""
    return "." in name


def key_id_of_name(name: str) -> str:
    """The id of the data key that a sealed content needs."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ContentCorrupt(f"{name!r:.80} is not the name of a sealed content")
    return found[2]


class ContentKey:
    """What a data key does for contents."""

    def __init__(self, key: DataKey) -> None:
        self._key = key

    def seals(self, name: str) -> bool:
        """Whether it is the name of a content that this key encrypts."""
        return is_sealed_name(name) and key_id_of_name(name) == self._key.id

    def name(self, content: Content) -> str:
        """What the content is called where it lies; the same for the same content."""
        told = bytes.fromhex(content.sha256) + content.size.to_bytes(8, "big")
        return f"{self._names.encrypt(told, [self._key.id.encode()]).hex()}.{self._key.id}"

    def content(self, name: str) -> Content:
        """The digest and size of the content that has this name."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only for those who encrypt

        key_id = key_id_of_name(name)
        try:
            told = self._names.decrypt(bytes.fromhex(name.partition(".")[0]), [key_id.encode()])
        except InvalidTag:
            raise ContentCorrupt(f"the name {name} was changed, or is of another key") from None
        return Content(told[:32].hex(), int.from_bytes(told[32:], "big"))

    def encryptor(self) -> "Encryptor":
        """For one new content."""
        salt = urandom(_SALT)
        return Encryptor(self._cipher(salt), salt)

    def pieces(self, read: Reading, name: str, offset: int = 0) -> Generator[bytes]:
        """The content from a byte on, decrypted as it is read; `ContentCorrupt` in place of what was tampered with.

        Whoever puts the same content again in the same moment puts other bytes there: then it begins again.
        """
        size = self.content(name).size
        end = self._end(read, name, size)
        while True:
            pieces = _decrypted(read, self._cipher(_salt_of(end)), name, size, offset)
            try:
                first = next(pieces, b"")
            except ContentCorrupt:
                now = self._end(read, name, size)
                if now == end:
                    raise
                end = now
            else:
                break
        if first:
            yield first
            yield from pieces

    def _end(self, read: Reading, name: str, size: int) -> bytes:
        """The end of the content, which says that it belongs to this name."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        end = b"".join(read(_length(size)))
        try:
            if len(end) != _END or not end.startswith(_MARK):
                raise InvalidTag
            self._cipher(_salt_of(end)).decrypt(_END_NONCE, end[-_TAG:], end[:-_TAG] + name.encode())
        except InvalidTag:
            raise ContentCorrupt(f"the content {name} was cut or changed at its end, or is another one") from None
        return end

    def _cipher(self, salt: bytes) -> "AESGCM":
        return cipher_of(self._derived(b"mnemon content", KEY_BYTES, salt))

    @cached_property
    def _names(self) -> "AESSIV":
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415

        return AESSIV(self._derived(b"mnemon content name", 2 * KEY_BYTES))

    def _derived(self, purpose: bytes, length: int, salt: bytes | None = None) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        return HKDF(SHA256(), length, salt, purpose).derive(self._key.secret)


class Encryptor:
    """Encrypts one content piece by piece, in constant memory."""

    def __init__(self, cipher: "AESGCM", salt: bytes) -> None:
        self._cipher = cipher
        self._salt = salt
        self._rest = bytearray()
        self._number = 0

    def add(self, piece: bytes) -> bytes:
        """What can be written once this piece has come; nothing, as long as a chunk is not full."""
        self._rest += piece
        done: list[bytes] = []
        start = 0
        while len(self._rest) - start > CHUNK:  # one that is just full may be the last
            done.append(self._chunk(bytes(self._rest[start : start + CHUNK]), is_last=False))
            start += CHUNK
        del self._rest[:start]
        return b"".join(done)

    def finish(self, name: str) -> bytes:
        """The last chunk, and the end, which is bound to the name."""
        last = self._chunk(bytes(self._rest), is_last=True)
        marked = _MARK + self._salt
        return last + marked + self._cipher.encrypt(_END_NONCE, b"", marked + name.encode())

    def _chunk(self, plain: bytes, *, is_last: bool) -> bytes:
        sealed = self._cipher.encrypt(_nonce(self._number, is_last=is_last), plain, None)
        self._number += 1
        return sealed


def _decrypted(read: Reading, cipher: "AESGCM", name: str, size: int, offset: int) -> Generator[bytes]:
    """Pieces of several chunks; `offset` may lie inside of a chunk, or at the end."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415

    last = max(size - 1, 0) // CHUNK
    number = min(offset // CHUNK, last)
    skipped = offset - number * CHUNK
    for sealed in _chunked(read, number, last, size):
        plain: list[bytes] = []
        for chunk in sealed:
            try:
                plain.append(cipher.decrypt(_nonce(number, is_last=number == last), chunk, None))
            except InvalidTag:
                raise ContentCorrupt(f"the content {name} was changed in chunk {number} of {last + 1}") from None
            number += 1
        piece = b"".join(plain)
        if piece[skipped:]:
            yield piece[skipped:]
        skipped = max(skipped - len(piece), 0)
    if number <= last:
        raise ContentCorrupt(f"the content {name} ends after chunk {number} of {last + 1}")


def _chunked(read: Reading, first: int, last: int, size: int) -> Iterator[list[bytes]]:
    """The sealed chunks from one on, as many at a time as come together."""
    start = first * (CHUNK + _TAG)
    left = _length(size) - start
    rest = b""
    for piece in read(start):
        rest += piece[:left]
        left -= len(piece[:left])
        whole = len(rest) if left == 0 else len(rest) - len(rest) % (CHUNK + _TAG)
        if whole:
            yield [rest[at : at + CHUNK + _TAG] for at in range(0, whole, CHUNK + _TAG)]
            rest = rest[whole:]
        if left == 0:
            return


def _length(size: int) -> int:
    """How long the chunks of a content are; an empty one has a chunk too."""
    return size + _TAG * max(1, -(-size // CHUNK))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _salt_of(end: bytes) -> bytes:
    return end[len(_MARK) : len(_MARK) + _SALT]
