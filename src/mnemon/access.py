"""Grants, turned into conditions that stand inside every query of a principal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from mnemon.errors import AccessDenied, InvalidStatus
from mnemon.model import Level, Principal
from mnemon.namespaces import EVERYTHING, check_prefix, covers, meet
from mnemon.sql import Fragment

_LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class Access:
    """What one caller may do. With no principal, everything.

    A session belongs to its user: a grant on `user:<user_id>` or on `session:<id>` opens it.
    """

    principal: Principal | None = None

    def __post_init__(self) -> None:
        if self.principal is None:
            return
        for prefix, level in self.principal.grants.items():
            check_prefix(prefix, 1024)
            if level not in _LEVELS:
                raise InvalidStatus(f"{level!r} is not a level of access; use one of {', '.join(_LEVELS)}")

    def actor(self, named: str | None) -> str | None:
        """Who acts: a principal always in its own name."""
        return self.principal.id if self.principal else named

    def prefixes(self, level: Level) -> list[str]:
        """The namespace prefixes that are open at this level or above."""
        if self.principal is None:
            return [EVERYTHING]
        enough = _LEVELS[_LEVELS.index(level) :]
        return [prefix.removesuffix(":") for prefix, held in self.principal.grants.items() if held in enough]

    def allows(self, namespace: str, level: Level) -> bool:
        """Whether the whole of `namespace` is open at `level`."""
        return self.principal is None or any(covers(prefix, namespace) for prefix in self.prefixes(level))

    def require(self, namespace: str, level: Level) -> None:
        """Raise `AccessDenied` unless the whole of `namespace` is open at `level`."""
        if not self.allows(namespace, level):
            who = cast("Principal", self.principal).id
            raise AccessDenied(f"{who!r} has no {level} grant on {namespace!r}")

    def require_session(self, session_id: str, user_id: str, level: Level) -> None:
        """Raise `AccessDenied` unless a session of this user would be open at `level`."""
        if not self.allows(f"session:{session_id}", level):
            self.require(f"user:{user_id}", level)

    def within(self, prefix: str, level: Level) -> list[str]:
        """The parts of `prefix` that are open at `level`; `AccessDenied` if there are none."""
        parts = meet(prefix, self.prefixes(level))
        if not parts:
            who = cast("Principal", self.principal).id
            raise AccessDenied(f"{who!r} has no {level} grant on anything in {prefix!r}")
        return parts

    def sessions(self, level: Level, id_column: str = "id") -> list[Fragment]:
        """The conditions that keep a query on `sessions` to those open at `level`."""
        prefixes = self.prefixes(level)
        if EVERYTHING in prefixes:
            return []
        params: dict[str, Any] = {}
        texts = [*_owned("user", "user_id", prefixes, params), *_owned("session", id_column, prefixes, params)]
        return [Fragment(" OR ".join(texts) or "1 = 0", params)]

    def journal(self) -> list[Fragment]:
        """The conditions that keep a query on the journal to what may be read."""
        prefixes = self.prefixes("read")
        if EVERYTHING in prefixes:
            return []
        below = under("namespace", prefixes, "open")
        params = dict(below.params)
        texts = [below.text, *_owned("user", "user_id", prefixes, params)]
        return [Fragment(" OR ".join(texts), params)]


def under(column: str, prefixes: Sequence[str], name: str) -> Fragment:
    """The condition that a namespace column lies at or below one of `prefixes`."""
    params: dict[str, Any] = {}
    texts: list[str] = []
    for number, prefix in enumerate(prefixes):
        if prefix == EVERYTHING:
            return Fragment("1 = 1")
        at = f"{name}{number}"
        texts.append(f"{column} = :{at} OR ({column} >= :{at}_from AND {column} < :{at}_to)")
        params |= {at: prefix, f"{at}_from": f"{prefix}:", f"{at}_to": f"{prefix};"}
    return Fragment(" OR ".join(texts) or "1 = 0", params)


def _owned(root: str, column: str, prefixes: Iterable[str], params: dict[str, Any]) -> list[str]:
    """Conditions on a plain id column, from the grants on `root` and on `root:<id>`."""
    prefixes = list(prefixes)
    if root in prefixes:
        return [f"{column} IS NOT NULL"]  # what belongs to nobody is not below the root
    ids = [p.removeprefix(f"{root}:") for p in prefixes if p.startswith(f"{root}:") and p.count(":") == 1]
    names = {f"{root}_owner{number}": value for number, value in enumerate(ids)}
    params.update(names)
    return [f"{column} IN ({', '.join(f':{name}' for name in names)})"] if names else []
