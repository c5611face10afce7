"""Real servers for the tests: from installed packages where one carries them, else from `binaries`.

A server lives in a temporary directory and ends with the process that started it, however that ends.
"""

from .postgresql import _initialise, _install, postgres, stoppable_postgres
from .processes import START_SECONDS, STOP_SECONDS, SUPERVISE, Account, Server, ServerFailed, free_ports
from .vectors import chroma, qdrant, weaviate

__all__ = [
    "START_SECONDS",
    "STOP_SECONDS",
    "SUPERVISE",
    "Account",
    "Server",
    "ServerFailed",
    "_initialise",
    "_install",
    "chroma",
    "postgres",
    "qdrant",
    "stoppable_postgres",
    "weaviate",
]


# `_install`, `_initialise`, `_free_port` and SUPERVISE serve tests/robustness/test_outage.py alone, whose server is
# a `stoppable_postgres` written by hand.
def _free_port() -> int:
    return free_ports(1)[0]
