"""What callers say of an episode, checked."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from mnemon.clock import micros, micros_or_none
from mnemon.episodes.rows import EpisodeRow, new_row, written
from mnemon.errors import InvalidInput, InvalidStatus
from mnemon.journal import Origin
from mnemon.model import EpisodeEntry, EpisodeKind, EpisodeStatus, Offer
from mnemon.namespaces import check_key, check_label
from mnemon.values import check_text, encode, encode_metadata

_MOST_PARTICIPANTS = 1000


def draft_row(
    origin: Origin,
    limit: int,
    *,
    namespace: str,
    entries: Iterable[Any],
    kind: str,
    title: str,
    participants: Iterable[str] | None,
    offers: Iterable[Offer | Mapping[str, Any]] | None,
    outcome: Any,
    started_at: datetime | None,
    ended_at: datetime | None,
    metadata: Mapping[str, Any] | None,
) -> EpisodeRow:
    """The row of a new episode; no part of it is larger than `limit` bytes."""
    chosen = check_kind(kind)
    told = check_entries(entries, limit)
    names = _check_participants(() if participants is None else participants, chosen)
    made = _check_offers(() if offers is None else offers, chosen, names, limit)
    first, last = _period(started_at, ended_at, [each.at for each in (*told, *made)], origin.now)
    if title != "":
        check_text("the episode's title", check_key("the episode's title", title, 512), limit)
    row = new_row(
        origin,
        namespace=namespace,
        kind=str(chosen),
        title=title,
        entries=told,
        participants=written(names),
        offers=made,
        outcome=None if outcome is None else encode("the episode's outcome", outcome, limit),
        metadata=encode_metadata(metadata, limit),
        started_at=first,
        ended_at=last,
    )
    if len(row.body) > limit or len(row.offers) > limit:
        raise InvalidInput(
            f"the episode has {max(len(row.body), len(row.offers))} characters; max_value_bytes allows {limit}: "
            "store what happened as several episodes"
        )
    return row


def check_kind(kind: str) -> EpisodeKind:
    try:
        return EpisodeKind(kind)
    except ValueError:
        raise InvalidStatus(f"{kind!r} is not a kind of episode; use one of {', '.join(EpisodeKind)}") from None


def check_status(status: str) -> EpisodeStatus:
    try:
        return EpisodeStatus(status)
    except ValueError:
        raise InvalidStatus(f"{status!r} is not an episode's status; use one of {', '.join(EpisodeStatus)}") from None


def check_entries(entries: Iterable[Any], limit: int) -> list[EpisodeEntry]:
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("an episode has several entries, as a list; put a single one in a list")
    found = [each if isinstance(each, EpisodeEntry) else EpisodeEntry(each) for each in entries]
    if not found:
        raise InvalidInput("an episode has at least one entry")
    for entry in found:
        encode("an entry's value", entry.value, limit)
        check_label("an entry's author", entry.author)
        micros_or_none(entry.at)
    return found


def _check_participants(participants: Iterable[str], kind: EpisodeKind) -> list[str]:
    if isinstance(participants, str) or not isinstance(participants, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"participants are several names, as a list, not {participants!r:.80}")
    names = [check_key("a participant's name", name, 256) for name in participants]
    if len(set(names)) != len(names) or len(names) > _MOST_PARTICIPANTS:
        raise InvalidInput(f"participants are at most {_MOST_PARTICIPANTS} different names")
    if kind is EpisodeKind.NEGOTIATION and len(names) < 2:
        raise InvalidInput("a negotiation has at least two participants")
    return names


def _check_offers(
    offers: Iterable[Offer | Mapping[str, Any]], kind: EpisodeKind, participants: Sequence[str], limit: int
) -> list[Offer]:
    if isinstance(offers, str | bytes | Mapping) or not isinstance(offers, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("offers are several, as a list; put a single one in a list")
    found = [_check_offer(offer, participants, limit) for offer in offers]
    if found and kind is not EpisodeKind.NEGOTIATION:
        raise InvalidInput(f"only a negotiation has offers, not a {kind}")
    return found


def _check_offer(offer: object, participants: Sequence[str], limit: int) -> Offer:
    if isinstance(offer, Mapping):
        told = cast("Mapping[str, Any]", offer)
        if not {"by", "terms"} <= told.keys() <= {"by", "terms", "at"}:
            raise InvalidInput(f"an offer has `by`, `terms` and perhaps `at`, not {', '.join(map(str, told)):.80}")
        offer = Offer(**told)
    if not isinstance(offer, Offer):
        raise InvalidInput(f"an offer is an Offer or a mapping of `by` and `terms`, not {offer!r:.80}")
    if offer.by not in participants:
        raise InvalidInput(f"{offer.by!r:.80} makes an offer and is not among the participants")
    encode("an offer's terms", offer.terms, limit)
    micros_or_none(offer.at)
    return offer


def _period(
    started_at: datetime | None, ended_at: datetime | None, told: Sequence[datetime | None], now: int
) -> tuple[int, int]:
    """From when to when: as given, or else as the entries tell, or else now."""
    known = sorted(micros(at) for at in told if at is not None)
    first = micros(started_at) if started_at is not None else known[0] if known else None
    last = micros(ended_at) if ended_at is not None else known[-1] if known else None
    if first is None or last is None:
        given = first if first is not None else last
        first, last = (now, now) if given is None else (given, max(given, now)) if last is None else (given, given)
    if first > last:
        raise InvalidInput("an episode's started_at must not be later than its ended_at")
    return first, last
