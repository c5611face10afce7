"""Where contents are kept, as the setting `content_url` says. Each technology is imported only when it is used."""

import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mnemon.errors import InvalidSettings
from mnemon.ports import Keeping
from mnemon.settings import Settings

_OBJECT_STORES = ("s3", "gs", "az")
_DRIVE = re.compile("/[A-Za-z]:")


def plan_keeping(settings: Settings) -> Callable[[], Keeping]:
    """How to open the store for contents, once it is used; it reaches nothing even then.

    A relative folder is relative to where the program is now. `InvalidSettings` if the URL cannot be used; if there
    is none and nothing else says where contents belong, when the store is to be opened.
    """
    url = settings.content_url
    if url is None:
        return _beside(settings.url)
    scheme = url.partition(":")[0]
    if scheme == "file":
        return partial(_in_folder, _folder(url))
    if scheme == "memory":
        return _in_memory
    if scheme not in _OBJECT_STORES:
        raise InvalidSettings(f"content_url should begin with file, memory, s3, gs or az, not with {scheme[:40]!r}")
    if find_spec("obstore") is None:
        raise InvalidSettings(f"contents at {scheme}: need obstore: pip install 'mnemon[objects]'")
    return partial(_in_objects, url)


def _in_folder(root: Path) -> Keeping:
    from mnemon.backends.filesystem import FileContents, FileShowcase  # noqa: PLC0415

    return Keeping(FileContents(root), FileShowcase(root))


def _in_memory() -> Keeping:
    from mnemon.backends.contentmemory import MemoryContents  # noqa: PLC0415

    return Keeping(MemoryContents())


def _in_objects(url: str) -> Keeping:
    from mnemon.backends.objectstore import ObjectContents  # noqa: PLC0415

    return Keeping(ObjectContents(url))


def _nowhere() -> Keeping:
    raise InvalidSettings(
        "nothing says where the contents of files are to be kept: set content_url to file:///folder, "
        "s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
    )


def _beside(database: str) -> Callable[[], Keeping]:
    """In memory for a database in memory, and else in a folder beside its file."""
    parts = urlsplit(database)
    if parts.scheme != "sqlite":
        return _nowhere
    path = unquote(parts.path).removeprefix("/")
    if path in ("", ":memory:"):
        return _in_memory
    return partial(_in_folder, Path(f"{path.removesuffix('.db')}.files").absolute())


def _folder(url: str) -> Path:
    """The folder that a URL names; one that begins with `file://./` is relative."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost", ".") or not path.strip("/") or not path.isprintable() or parts.query:
        raise InvalidSettings(f"{url!r} should be file:///folder or file://./folder, with special characters as %XX")
    if parts.netloc == "." or _DRIVE.match(path):
        path = path.removeprefix("/")
    return Path(path).absolute()
