"""What a faulty store was told to do at some of its next calls."""

import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

Action = TypeVar("Action")


@dataclass(slots=True)
class _Trigger(Generic[Action]):
    action: Action
    skip: int
    times: int

    def is_due(self) -> bool:
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return self.times >= 0


class Triggers(Generic[Action]):
    """What is to happen, by the name of the call or statement at which it does; any thread may ask."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[_Trigger[Action]]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, action: Action, skip: int, times: int) -> None:
        """`action` is due at the next `times` calls, once `skip` more have passed."""
        with self._lock:
            self._waiting.setdefault(name, []).append(_Trigger(action, skip, times))

    def due(self, name: str) -> list[Action]:
        """A call of this name has come: what is to happen now."""
        with self._lock:
            return [trigger.action for trigger in self._waiting.get(name, ()) if trigger.is_due()]

    def clear(self) -> None:
        """Forget everything that has not happened yet."""
        with self._lock:
            self._waiting.clear()
