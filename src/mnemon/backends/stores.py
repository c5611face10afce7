"""Which vector store a URL names. Each technology is imported only when it is asked for."""

from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TypeAlias

from mnemon.backends.addresses import KINDS, Address
from mnemon.errors import InvalidSettings
from mnemon.model import Space
from mnemon.ports import VectorMemory
from mnemon.settings import Settings

Opener: TypeAlias = Callable[[str, Space, Settings], VectorMemory]

_ELSEWHERE = "mnemon.vector_stores"
"""The group of entry points by which other packages offer theirs, each named as its URLs begin."""


def check_url(url: str) -> None:
    """Refuse a URL that `load_store` could not use; loads no client, and reaches nothing.

    `InvalidSettings` if there is no such store, the URL is wrong, or something has to be installed for it.
    """
    technology = _technology(url)
    if technology not in KINDS:
        _from_another_package(technology)
    else:
        Address.parse(url)
        library = KINDS[technology].library
        if find_spec(library) is None:
            raise InvalidSettings(
                f"a vector store at {technology}: needs {library}: pip install 'mnemon[{technology}]'"
            )


def load_store(url: str, space: Space, settings: Settings) -> VectorMemory:
    """The vector store at `url`, opened for a space; `InvalidSettings` as for `check_url`.

    Nothing is sent yet: the store is reached when it is first used, and may be down now.
    """
    check_url(url)
    return _opener(_technology(url))(url, space, settings)


def _technology(url: str) -> str:
    return url.partition(":")[0].partition("+")[0].lower()


def _opener(technology: str) -> Opener:
    match technology:
        case "qdrant":
            from mnemon.backends.qdrant import open_store  # noqa: PLC0415
        case "weaviate":
            from mnemon.backends.weaviate import open_store  # noqa: PLC0415
        case "chroma":
            from mnemon.backends.chroma import open_store  # noqa: PLC0415
        case _:
            open_store = _from_another_package(technology)
    return open_store


def _from_another_package(technology: str) -> Opener:
    found = entry_points(group=_ELSEWHERE, name=technology)
    if not found:
        raise InvalidSettings(
            f"the URL of a vector store should begin with qdrant:, weaviate: or chroma:, not with {technology[:40]!r}"
        )
    return next(iter(found)).load()
