"""What a run was asked for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """Where the databases lie, how often everything is repeated and how large it is."""

    folder: Path
    rounds: int = 20
    quick: bool = False

    def scale(self, full: int, quick: int) -> int:
        return quick if self.quick else full
