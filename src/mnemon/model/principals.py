"""Who asks, and what they may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["read", "write", "admin"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking, and the namespace prefixes that they may `read`, `write` or `admin`.

    Each level includes those before it. The prefix `""` covers everything.
    """

    id: str
    grants: Mapping[str, Level]
