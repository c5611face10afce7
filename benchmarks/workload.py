"""What is written and read: made from numbers, so that every contestant gets the same."""

from typing import Any

EVENT_TEXT = (
    "I moved from Bergen to Oslo in March, so please change the delivery address of my subscription, "
    "and tell me whether the parcel that is on its way can still be sent to the new one."
)
MEMORIES_PER_NAMESPACE = 100


def user(session_id: str) -> str:
    """Whose session it is: every session has a user of its own."""
    return f"user-of-{session_id}"


def event(number: int) -> dict[str, Any]:
    """A turn of a conversation, about 300 bytes as JSON."""
    return {
        "role": "user" if number % 2 else "assistant",
        "text": EVENT_TEXT,
        "tool": {"name": "lookup_order", "arguments": {"order": number}},
        "tokens": number % 997,
    }


def delta(number: int) -> dict[str, Any]:
    """Three keys of state: two of the session, one of its user."""
    return {"step": number, "topic": f"delivery {number % 13}", "user:last_order": number}


def namespace(number: int) -> str:
    """The namespace that memory `number` lies in; a hundred share one."""
    return f"user:{number // MEMORIES_PER_NAMESPACE:05}:profile"


def key(number: int) -> str:
    return f"fact-{number:07}"


def value(number: int) -> dict[str, Any]:
    """About 150 bytes as JSON."""
    return {
        "subject": f"user {number}",
        "fact": "lives in Oslo and prefers parcels in the evening",
        "weight": number % 7,
    }


def metadata(number: int) -> dict[str, Any]:
    return {"source": "conversation", "turn": number % 100}


def scattered(number: int, count: int) -> int:
    """A number below `count` that looks random and is the same every time."""
    return number * 2_654_435_761 % count
