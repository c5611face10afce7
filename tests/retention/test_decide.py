"""The decision is pure: what is told of memories goes in, what is to be done comes out."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.errors import InvalidInput
from mnemon.model import MemoryType, RetentionPolicy
from mnemon.namespaces import covers
from mnemon.policies import check_policies, policy_for
from mnemon.retention.decide import DAY, Decision, Footprint, Sized, VersionSize, decide, relevance, weekly_growth

NOW = 1000 * DAY
TYPES = [str(each) for each in MemoryType]
PLACES = ["user:ann", "user:ann:facts", "user:anna", "session:s1", "app:x:agents:y"]
PREFIXES = ["", "user", "user:ann", "user:ann:facts", "session", "app:x"]


def policy(**bounds: Any) -> RetentionPolicy:
    return RetentionPolicy(**{"name": "p", **bounds})


def footprint(key: str = "k", *, days: float = 0, sizes: tuple[int, ...] = (10,), **told: Any) -> Footprint:
    versions = tuple(VersionSize(number, size) for number, size in enumerate(sizes, 1))
    written = {"namespace": "user:ann", "memory_type": "semantic", "written_at": NOW - round(days * DAY), **told}
    return Footprint(key=key, versions=versions, **written)


@st.composite
def footprints(draw: st.DrawFn) -> list[Footprint]:
    places = draw(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from("abcdefgh")), unique=True, max_size=12))
    moments = st.integers(0, 400).map(lambda days: NOW - days * DAY)
    return [
        Footprint(
            namespace,
            key,
            draw(st.sampled_from(TYPES)),
            tuple(
                VersionSize(number, draw(st.integers(1, 100)), draw(st.booleans()) and number == 1)
                for number in range(1, draw(st.integers(1, 5)) + 1)
            ),
            draw(moments),
            draw(st.floats(0, 1)),
            draw(st.booleans()) and draw(st.booleans()),
            draw(st.integers(0, 20)),
            draw(st.none() | moments),
            draw(st.none() | moments),
        )
        for namespace, key in places
    ]


@st.composite
def policies(draw: st.DrawFn) -> list[RetentionPolicy]:
    scopes = draw(
        st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from(["", *TYPES])), unique=True, max_size=6)
    )
    found: list[RetentionPolicy] = []
    for number, (namespace, kind) in enumerate(scopes):
        told: dict[str, Any] = {
            "name": f"p{number}", "namespace": namespace, "types": (MemoryType(kind),) if kind else (),
            "archive": draw(st.booleans()),
        }  # fmt: skip
        if draw(st.integers(0, 4)) == 0:
            found.append(RetentionPolicy(**told, pinned=True))
            continue
        versions = draw(st.none() | st.integers(1, 4))
        found.append(
            RetentionPolicy(
                **told,
                max_age_days=draw(st.none() | st.floats(0, 400)),
                min_relevance=draw(st.none() | st.floats(0, 1)),
                half_life_days=draw(st.floats(0.5, 100)),
                max_size=draw(st.none() | st.integers(0, 800)),
                versions_kept=versions,
                squash=versions is not None and draw(st.booleans()),
            )
        )
    return found


# ---------------------------------------------------------------------------------------------------- each bound


def test_what_is_older_than_the_policy_allows_goes() -> None:
    [action] = decide(
        [footprint("old", days=91, sizes=(5, 7)), footprint("new", days=89)], [policy(max_age_days=90)], NOW
    )
    assert (action.key, action.reason, action.version, action.last, action.versions) == ("old", "age", 2, 2, 2)
    assert (action.size, action.is_whole, action.status, action.policy) == (12, True, "planned", "p")


def test_the_age_of_what_was_restored_begins_anew() -> None:
    assert not decide([footprint(days=200, restored_at=NOW - 10 * DAY)], [policy(max_age_days=90)], NOW)
    assert decide([footprint(days=200, restored_at=NOW - 91 * DAY)], [policy(max_age_days=90)], NOW)


def test_to_be_recalled_does_not_make_a_memory_younger() -> None:
    assert decide([footprint(days=91, uses=100, used_at=NOW)], [policy(max_age_days=90)], NOW)


def test_only_so_many_versions_are_kept() -> None:
    [action] = decide([footprint(sizes=(1, 2, 4, 8))], [policy(versions_kept=2)], NOW)
    assert (action.reason, action.last, action.versions, action.size, action.is_whole) == ("versions", 2, 2, 3, False)
    assert not decide([footprint(sizes=(1, 2))], [policy(versions_kept=2)], NOW)


def test_a_summary_is_not_squashed_again_before_there_is_more_to_squash() -> None:
    squashing = policy(versions_kept=1, squash=True)
    summary = VersionSize(1, 9, is_stand_in=True)
    assert not decide([replace(footprint(), versions=(summary, VersionSize(4, 1)))], [squashing], NOW)
    more = replace(footprint(), versions=(summary, VersionSize(4, 1), VersionSize(5, 1)))
    [action] = decide([more], [squashing], NOW)
    assert (action.last, action.versions, action.squash) == (4, 2, True)


def test_the_least_relevant_make_room() -> None:
    told = [footprint("a", importance=0.9), footprint("b", importance=0.1), footprint("c", importance=0.5)]
    gone = decide(told, [policy(max_size=20)], NOW)
    assert [(action.key, action.reason) for action in gone] == [("b", "size")]
    assert [action.key for action in decide(told, [policy(max_size=10)], NOW)] == ["b", "c"]
    assert not decide(told, [policy(max_size=30)], NOW)


def test_versions_are_given_up_before_memories() -> None:
    told = [footprint("a", sizes=(90, 10)), footprint("b", sizes=(10,))]
    [action] = decide(told, [policy(max_size=20, versions_kept=1)], NOW)
    assert (action.key, action.reason, action.last) == ("a", "versions", 1)


def test_what_is_not_used_any_more_becomes_irrelevant() -> None:
    told = [footprint("idle", days=100), footprint("used", days=100, uses=3, used_at=NOW - DAY)]
    [action] = decide(told, [policy(min_relevance=0.2)], NOW)
    assert (action.key, action.reason) == ("idle", "relevance")


@pytest.mark.parametrize("told", [{"is_pinned": True}, {"namespace": "user:ann:pinned"}])
def test_pinned_memories_stay(told: dict[str, Any]) -> None:
    strict = policy(max_age_days=0, max_size=0, versions_kept=1, min_relevance=1.0)
    pinning = RetentionPolicy(name="pins", namespace="user:ann:pinned", pinned=True)
    assert decide([footprint(days=9, sizes=(5, 5))], [strict, pinning], NOW)
    assert not decide([footprint(days=9, sizes=(5, 5), **told)], [strict, pinning], NOW)


def test_what_there_is_is_counted_by_policy() -> None:
    decision = Decision([policy(namespace="user:ann")], NOW)
    for each in (footprint("a", sizes=(1, 2)), footprint("b", is_pinned=True), footprint("c", namespace="app:x")):
        decision.weigh(each)
    none, ann = decision.uses()
    assert (none.policy, none.memories, none.versions, none.size, none.pinned) == ("", 1, 1, 10, 0)
    assert (ann.policy, ann.memories, ann.versions, ann.size, ann.pinned) == ("p", 2, 3, 13, 1)


# ----------------------------------------------------------------------------------------------- whatever there is


@given(footprints(), policies())
def test_nothing_is_done_to_what_no_policy_speaks_of(told: list[Footprint], given: list[RetentionPolicy]) -> None:
    by_place = {(each.namespace, each.key): each for each in told}
    names = {each.name: each for each in check_policies(given)}
    actions = decide(told, given, NOW)
    assert len({(action.namespace, action.key) for action in actions}) == len(actions)
    for action in actions:
        each = by_place[action.namespace, action.key]
        chosen = policy_for(given, each.namespace, each.memory_type)
        assert chosen == names[action.policy]
        assert not chosen.pinned
        assert not each.is_pinned
        assert action.version == each.versions[-1].version
        removed = [version for version in each.versions if version.version <= action.last]
        assert (action.versions, action.size) == (len(removed), sum(version.size for version in removed))


@given(footprints(), policies(), st.randoms())
def test_the_order_does_not_matter(told: list[Footprint], given: list[RetentionPolicy], random: Any) -> None:
    expected = decide(told, given, NOW)
    random.shuffle(told)
    random.shuffle(given)
    assert decide(told, given, NOW) == expected


@given(footprints(), policies())
def test_done_once_there_is_nothing_left_to_do(told: list[Footprint], given: list[RetentionPolicy]) -> None:
    actions = {(action.namespace, action.key): action for action in decide(told, given, NOW)}
    left: list[Footprint] = []
    for each in told:
        action = actions.get((each.namespace, each.key))
        if action is None:
            left.append(each)
        elif not action.is_whole:
            summary = (VersionSize(1, 0, is_stand_in=True),)
            newer = tuple(version for version in each.versions if version.version > action.last)
            left.append(replace(each, versions=summary + newer))
    assert decide(left, given, NOW) == ()


@given(footprints(), policies())
def test_every_policy_is_kept_afterwards(told: list[Footprint], given: list[RetentionPolicy]) -> None:
    actions = {(action.namespace, action.key): action for action in decide(told, given, NOW)}
    sizes: dict[str, int] = {}
    for each in told:
        chosen = policy_for(given, each.namespace, each.memory_type)
        action = actions.get((each.namespace, each.key))
        if chosen is None or each.is_pinned or (action and action.is_whole):
            continue
        if chosen.max_age_days is not None:
            assert NOW - each.standing_since <= chosen.max_age_days * DAY
        kept = [version for version in each.versions if action is None or version.version > action.last]
        if chosen.versions_kept is not None:
            assert len(kept) <= chosen.versions_kept + 1
        sizes[chosen.name] = sizes.get(chosen.name, 0) + sum(version.size for version in kept)
    for chosen in given:
        if chosen.max_size is not None and not any(each.is_pinned for each in told):
            assert sizes.get(chosen.name, 0) <= chosen.max_size


@given(footprints(), st.floats(0.5, 100), st.integers(0, 100))
def test_relevance_grows_with_use_and_falls_with_time(told: list[Footprint], half_life: float, days: int) -> None:
    for each in told:
        before = relevance(each, half_life, NOW)
        assert 0 <= before <= 1
        assert relevance(each, half_life, NOW + days * DAY) <= before
        assert relevance(replace(each, uses=each.uses + 1, used_at=NOW), half_life, NOW) >= before
        assert relevance(replace(each, importance=1.0), half_life, NOW) >= before


def test_relevance_halves() -> None:
    assert relevance(footprint(importance=0.8), 30, NOW) == pytest.approx(0.8)
    assert relevance(footprint(importance=0.8, days=30), 30, NOW) == pytest.approx(0.4)
    assert relevance(footprint(importance=0.8, days=30, used_at=NOW), 30, NOW) == pytest.approx(0.8)


# --------------------------------------------------------------------------------------------------------- policies


@given(policies(), st.sampled_from(PLACES), st.sampled_from(TYPES))
def test_the_nearest_policy_is_the_one(given: list[RetentionPolicy], namespace: str, kind: str) -> None:
    chosen = policy_for(given, namespace, kind)
    fitting = [each for each in given if covers(each.namespace, namespace) and (not each.types or kind in each.types)]
    if chosen is None:
        assert not fitting
        return
    assert chosen in fitting
    for other in fitting:
        assert len(other.namespace) <= len(chosen.namespace)
        if other.namespace == chosen.namespace and other != chosen:
            assert chosen.types
            assert not other.types


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"namespace": "nowhere"},
        {"max_age_days": -1},
        {"half_life_days": 0},
        {"max_size": -1},
        {"versions_kept": 0},
        {"min_relevance": 1.5},
        {"min_relevance": -0.5},
        {"squash": True},
        {"pinned": True, "max_age_days": 3},
    ],
)
def test_policies_that_cannot_be_used_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_policies([policy(**wrong)])


def test_two_policies_for_the_same_memories_are_refused() -> None:
    with pytest.raises(InvalidInput, match="both for all memories in user:ann"):
        check_policies([policy(namespace="user:ann"), policy(name="q", namespace="user:ann:")])
    with pytest.raises(InvalidInput, match="two retention policies"):
        check_policies([policy(namespace="user:ann"), policy(namespace="user:bob")])
    episodic = policy(name="q", namespace="user:ann", types=(MemoryType.EPISODIC,))
    assert check_policies([policy(namespace="user:ann"), episodic])


# ----------------------------------------------------------------------------------------------------------- growth


def test_growth_is_that_of_a_week() -> None:
    now = Sized(NOW, 1000)
    assert weekly_growth([], now) == 0
    assert weekly_growth([Sized(NOW - DAY, 900)], now) == 100
    assert weekly_growth([Sized(NOW - 7 * DAY, 400), Sized(NOW - DAY, 900)], now) == 600
    assert weekly_growth([Sized(NOW - 9 * DAY, 0), Sized(NOW - 7 * DAY, 400), Sized(NOW - DAY, 900)], now) == 600
    assert weekly_growth([Sized(NOW - 14 * DAY, 0)], now) == 500
    assert weekly_growth([Sized(NOW - DAY, 1500)], now) == -500
    assert weekly_growth([Sized(NOW + DAY, 0)], now) == 0
