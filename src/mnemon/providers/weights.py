"""What is common to models whose weights lie on this machine."""

import hashlib
from pathlib import Path
from typing import Any

import numpy.typing as npt
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

WEIGHTS = "model.safetensors"
HUB_OWNER = "sentence-transformers"
"""Who publishes the models of the hub that are named without an owner."""


def version_of(file: Path) -> str:
    """A short version that is the same for the same weights, wherever they lie and whatever runs them."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:12]


def arrays_of(file: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a safetensors file by name."""
    return load_file(file)
