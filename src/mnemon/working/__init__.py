"""What a session works with now: buffers that fill and are drained, and scratchpads."""

from mnemon.working.service import WorkingMemory

__all__ = ["WorkingMemory"]
