"""An index of vectors in memory, on numpy alone: it loads numpy, so import it only when something is searched."""

from mnemon.vectorindex.index import VectorIndex

__all__ = ["VectorIndex"]
