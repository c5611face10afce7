"""Long-term memories: JSON values under a namespace and a key, each change a new version."""

from mnemon.memories.service import MemoryService

__all__ = ["MemoryService"]
