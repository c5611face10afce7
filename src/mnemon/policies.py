"""Retention policies: which can be used together, and which one a memory falls under."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from mnemon.errors import InvalidSettings
from mnemon.model import RetentionPolicy
from mnemon.namespaces import check_key, check_prefix, covers

_LONGEST_NAME = 100


def check_policies(policies: Sequence[RetentionPolicy]) -> tuple[RetentionPolicy, ...]:
    """The policies, if each can be used and no memory falls under two of them; otherwise `InvalidSettings`."""
    names: set[str] = set()
    scopes: dict[tuple[str, str], str] = {}
    for policy in policies:
        _check(policy)
        if policy.name in names:
            raise InvalidSettings(f"two retention policies have the name {policy.name!r}")
        names.add(policy.name)
        for scope in _scopes(policy):
            other = scopes.setdefault(scope, policy.name)
            if other != policy.name:
                told = f"{scope[1] or 'all'} memories in {scope[0] or 'all namespaces'}"
                raise InvalidSettings(f"the retention policies {other!r} and {policy.name!r} are both for {told}")
    return tuple(policies)


def policy_for(policies: Sequence[RetentionPolicy], namespace: str, memory_type: str) -> RetentionPolicy | None:
    """The policy that a memory falls under: the nearest above it, and of those the one that names its type."""
    return _nearest(tuple(policies), namespace, memory_type)


@lru_cache(4096)
def _nearest(policies: tuple[RetentionPolicy, ...], namespace: str, memory_type: str) -> RetentionPolicy | None:
    fitting = [
        policy
        for policy in policies
        if covers(_place(policy), namespace) and (not policy.types or memory_type in policy.types)
    ]
    return max(fitting, key=lambda policy: (len(_place(policy)), bool(policy.types)), default=None)


def _scopes(policy: RetentionPolicy) -> Iterable[tuple[str, str]]:
    return [(_place(policy), each) for each in map(str, policy.types or ("",))]


def _place(policy: RetentionPolicy) -> str:
    return policy.namespace.removesuffix(":")


def _check(policy: RetentionPolicy) -> None:
    check_key("a retention policy's name", policy.name, _LONGEST_NAME)
    check_prefix(policy.namespace, 10_000)
    bounds = {
        "max_age_days": (policy.max_age_days, 0.0),
        "half_life_days": (policy.half_life_days, 0.001),
        "max_size": (policy.max_size, 0),
        "versions_kept": (policy.versions_kept, 1),
        "min_relevance": (policy.min_relevance, 0),
    }
    for name, (value, least) in bounds.items():
        if value is not None and value < least:
            raise InvalidSettings(f"{name} of the retention policy {policy.name!r} is {value}; at least {least}")
    if policy.min_relevance is not None and policy.min_relevance > 1:
        raise InvalidSettings(f"min_relevance of the retention policy {policy.name!r} is above 1")
    if policy.squash and policy.versions_kept is None:
        raise InvalidSettings(f"the retention policy {policy.name!r} squashes, so it has to say versions_kept")
    if policy.pinned and _removes(policy):
        raise InvalidSettings(f"the retention policy {policy.name!r} is pinned, so it cannot have bounds too")


def _removes(policy: RetentionPolicy) -> bool:
    bounds = (policy.max_age_days, policy.min_relevance, policy.max_size, policy.versions_kept)
    return any(bound is not None for bound in bounds)
