"""Real servers for the tests: from installed packages where one carries them, else from `binaries`.

A server lives in a temporary directory and ends with the process that started it, however that ends.
"""

from .language import language_model
from .objects import objects
from .postgresql import postgres, stoppable_postgres
from .processes import STOP_SECONDS, Account, Server, ServerFailed
from .vectors import chroma, qdrant, weaviate

__all__ = [
    "STOP_SECONDS",
    "Account",
    "Server",
    "ServerFailed",
    "chroma",
    "language_model",
    "objects",
    "postgres",
    "qdrant",
    "stoppable_postgres",
    "weaviate",
]
