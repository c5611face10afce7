"""Where a vector store is, as the setting `vector_stores` writes it down; loads no client."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from mnemon.errors import InvalidSettings

_KEY_VARIABLE = "api_key_env"
_TLS_PORT = 443


@dataclass(frozen=True, slots=True)
class Kind:
    """What the addresses of a technology may have, besides a host, a port and a key."""

    library: str
    """The client that a driver needs."""
    port: int
    options: frozenset[str]
    grpc_port: int | None = None
    """The port at which gRPC, which it cannot do without, is spoken by default."""
    has_folders: bool = False
    """Whether it can also be a folder of this machine."""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "qdrant": Kind("qdrant_client", 6333, frozenset({"grpc_port"})),
        "weaviate": Kind("weaviate", 8080, frozenset({"grpc_host", "grpc_port"}), grpc_port=50051),
        "chroma": Kind("chromadb", 8000, frozenset({"tenant", "database"}), has_folders=True),
    }
)


@dataclass(frozen=True, slots=True)
class Address:
    """`technology://:key@host:port?option=value`, or `technology+https://…` with TLS."""

    technology: str
    secure: bool
    host: str
    """Empty if it is a folder."""
    port: int
    folder: str
    """Relative to where the program runs, unless it begins with a slash."""
    api_key: str | None = field(repr=False)
    options: Mapping[str, str]
    grpc_host: str = ""
    grpc_port: int | None = None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """The address that `url` writes down; what is wrong with it is said without repeating its password.

        Besides a technology's own options there is `api_key_env`, which names an environment variable with the key.
        """
        parts, port = _split(url)
        technology, _, security = parts.scheme.partition("+")
        kind = KINDS[technology]
        if security not in ("", "https") or parts.fragment:
            raise InvalidSettings(f"a URL of {technology} should begin with {technology}: or {technology}+https:")
        _check_place(technology, kind, parts, port)
        if parts.username:
            raise InvalidSettings(
                f"the key for {technology} is the URL's password, without a user: {technology}://:KEY@host"
            )
        options = _options(technology, kind, parts.query)
        key = _key_from_environment(options.pop(_KEY_VARIABLE, None)) or unquote(parts.password or "") or None
        address = cls(
            technology=technology,
            secure=bool(security),
            host=parts.hostname or "",
            port=port or (_TLS_PORT if security else kind.port),
            folder="" if parts.hostname else unquote(parts.path).removeprefix("/"),
            api_key=key,
            options=MappingProxyType(options),
        )
        return address._with_grpc(kind)

    def _with_grpc(self, kind: Kind) -> "Address":
        text = self.options.get("grpc_port")
        if text is not None and not (text.isdecimal() and 0 < int(text) < 65536):
            raise InvalidSettings(f"the option grpc_port of a URL of {self.technology} should be a port, not {text!r}")
        port = int(text) if text else (kind.grpc_port and (_TLS_PORT if self.secure else kind.grpc_port))
        host = self.options.get("grpc_host", self.host)
        if (host, port) == (self.host, self.port):
            names = " or ".join(sorted(kind.options & {"grpc_host", "grpc_port"}))
            raise InvalidSettings(f"{self} needs a {names} that differs from the URL's host and port")
        return replace(self, grpc_host=host, grpc_port=port)

    def __str__(self) -> str:
        secure = "+https" if self.secure else ""
        return f"{self.technology}{secure}://" + (f"{self.host}:{self.port}" if self.host else f"/{self.folder}")


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:  # its text may quote the password
        raise InvalidSettings(
            "the URL of a vector store should be technology://:key@host:port, with special characters as %XX"
        ) from None


def _check_place(technology: str, kind: Kind, parts: SplitResult, port: int | None) -> None:
    path = parts.path.strip("/")
    is_server = bool(parts.hostname) and not path
    is_folder = kind.has_folders and path and not parts.netloc and port is None and "+" not in parts.scheme
    if not is_server and not is_folder:
        folder = f", or {technology}:///folder on this machine" if kind.has_folders else ""
        raise InvalidSettings(f"a URL of {technology} should be {technology}://host:{kind.port}{folder}")


def _options(technology: str, kind: Kind, query: str) -> dict[str, str]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    known = kind.options | {_KEY_VARIABLE}
    unknown = given.keys() - known
    if unknown:
        names = ", ".join(sorted(known))
        raise InvalidSettings(f"a URL of {technology} has no option {min(unknown)!r}; use any of {names}")
    return given


def _key_from_environment(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InvalidSettings(f"the URL of a vector store names the variable {variable!r}, which is not set")
    return key
