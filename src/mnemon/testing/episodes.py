"""The contract of `EpisodeService`: what happened is kept as it was told, and says how far it is consolidated."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from mnemon.episodes.claims import Claims
from mnemon.errors import (
    AccessDenied,
    ArchiveNotFound,
    ContentMissing,
    EpisodeNotFound,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidNamespace,
    InvalidStatus,
    InvalidTransition,
    InvalidValue,
    LeaseLost,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
    ValueTooLarge,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.journal import Origin
from mnemon.model import Episode, EpisodeEntry, EpisodeStatus, Offer, Page, Principal
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import Suite, journal_after, last_position, peek, plant, refused, unchanged

OLD = 91 * 86_400.0
"""Seconds after which retention takes an episode out of the database."""


async def fail(store: Store, episode: Episode) -> None:
    """Behind the service's back, let consolidation have given up."""
    sql = "UPDATE episodes SET status = 'failed', attempts = 5, error = 'no' WHERE id = :id"
    assert await plant(store, sql, id=episode.id) == 1


async def consolidate(store: Store, episode: Episode) -> None:
    """Behind the service's back, let consolidation be done with it, so that retention takes it."""
    sql = "UPDATE episodes SET status = 'consolidated', consolidated_at = created_at WHERE id = :id"
    assert await plant(store, sql, id=episode.id) == 1


def _erasing(memory: HybridMemoryService) -> Callable[[], Awaitable[None]]:
    async def erase() -> None:
        await memory.episodes.erase("user:alice")

    return erase


def _applying(memory: HybridMemoryService) -> Callable[[], Awaitable[None]]:
    async def apply() -> None:
        assert (await memory.retention.apply()).applied == 1

    return apply


class EpisodeSuite(Suite):
    """Needs `memory` with a `content_url`, or a database that has a place for contents beside it."""

    @pytest.fixture
    async def session(self, memory: HybridMemoryService) -> str:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        return "s1"

    async def test_what_happened_is_kept_as_it_was_told(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        begun = clock.moment
        clock.advance(60)
        entries = [EpisodeEntry({"role": "user", "text": "I live in Oslo."}, begun, "alice"), "noted", 3, None, ["x"]]

        stored = await memory.episodes.store(
            entries, session_id=session, title="Moving", metadata={"n": 1}, actor="bot", task_id="t1"
        )

        assert stored.entries == (entries[0], *(EpisodeEntry(each) for each in entries[1:]))
        assert (stored.namespace, stored.session_id, stored.kind) == ("user:alice", "s1", "conversation")
        assert (stored.title, stored.metadata, stored.task_id) == ("Moving", {"n": 1}, "t1")
        assert (stored.status, stored.attempts, stored.error) == ("pending", 0, None)
        assert (stored.started_at, stored.ended_at) == (begun, begun)
        assert (stored.created_by, stored.created_at, stored.consolidated_at) == ("bot", clock.moment, None)
        assert (stored.participants, stored.offers, stored.outcome) == ((), (), None)
        assert await memory.episodes.get(stored.id) == stored
        assert await peek(store, "SELECT status, namespace, claim FROM episodes") == [("pending", "user:alice", None)]

    async def test_the_journal_has_no_content(self, memory: HybridMemoryService, store: Store, session: str) -> None:
        stored = await memory.store_episode(["SECRET"], session_id=session, title="SECRET", outcome="SECRET")

        change = (await memory.audit(entity="episode")).items[0]
        assert (change.entity_id, change.operation, change.namespace) == (str(stored.id), "store", "user:alice")
        assert (change.user_id, change.session_id) == ("alice", "s1")
        assert change.payload == {"kind": "conversation", "status": "pending"}
        assert "SECRET" not in str(await peek(store, "SELECT * FROM journal"))

    async def test_a_negotiation_has_participants_offers_and_an_outcome(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        later = clock.moment + timedelta(minutes=5)
        stored = await memory.store_episode(
            ["We begin."],
            kind="negotiation",
            namespace="project:fleet",
            participants=["buyer", "seller"],
            offers=[{"by": "buyer", "terms": {"price": 80}}, Offer("seller", {"price": 90}, later)],
            outcome={"agreed": True, "price": 85},
            started_at=clock.moment,
        )

        assert stored.participants == ("buyer", "seller")
        assert stored.offers == (Offer("buyer", {"price": 80}), Offer("seller", {"price": 90}, later))
        assert stored.outcome == {"agreed": True, "price": 85}
        assert (stored.started_at, stored.ended_at) == (clock.moment, later)
        assert await memory.episodes.get(stored.id) == stored

    async def test_a_period_is_what_is_known_of_it(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        now, hour = clock.moment, timedelta(hours=1)

        async def period(**told: Any) -> tuple[Any, Any]:
            stored = await memory.store_episode(["x"], namespace="user:a", **told)
            return stored.started_at, stored.ended_at

        assert await period() == (now, now)
        assert await period(started_at=now - hour) == (now - hour, now)
        assert await period(started_at=now + hour) == (now + hour, now + hour)
        assert await period(ended_at=now - hour) == (now - hour, now - hour)
        assert await period(started_at=now - hour, ended_at=now + hour) == (now - hour, now + hour)

    async def test_episodes_are_listed_the_newest_first(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        first = await memory.store_episode(["1"], namespace="user:al", kind="task_log")
        second = await memory.store_episode(["2"], session_id=session)
        third = await memory.store_episode(["3"], namespace="user:alice:work", session_id=session)
        await fail(store, third)
        episodes = memory.episodes

        async def ids(**wanted: Any) -> list[int]:
            return [episode.id for episode in await episodes.list(**wanted)]

        assert await ids() == [third.id, second.id, first.id]
        assert await ids(namespace="user:alice") == [third.id, second.id]
        assert await ids(namespace="user:al") == [first.id]
        assert await ids(session_id=session) == [third.id, second.id]
        assert await ids(kind="task_log") == [first.id]
        assert await ids(status="failed") == [third.id]
        assert await ids(status="pending", namespace="user:alice") == [second.id]
        assert await ids(status="consolidated") == []
        page = await episodes.list(namespace="user", limit=2)
        assert [episode.id for episode in page] == [third.id, second.id]
        page = await episodes.list(namespace="user", limit=2, cursor=page.next_cursor)
        assert ([episode.id for episode in page], page.next_cursor) == ([first.id], None)

    async def test_how_many_have_which_status(self, memory: HybridMemoryService, store: Store) -> None:
        for name in ("a", "a", "b"):
            last = await memory.store_episode(["x"], namespace=f"user:{name}")
        await fail(store, last)

        nothing = dict.fromkeys(EpisodeStatus, 0)
        assert await memory.episodes.counts() == {**nothing, "pending": 2, "failed": 1}
        assert await memory.episodes.counts("user:a") == {**nothing, "pending": 2}
        assert await memory.episodes.counts("user:c") == nothing

    async def test_a_failed_one_is_tried_again(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        stored = [await memory.store_episode([number], namespace=f"user:u{number % 2}") for number in range(5)]
        for episode in stored[:4]:
            await fail(store, episode)
        clock.advance(5)
        start = await last_position(store)

        assert await memory.episodes.retry(stored[0].id, actor="bot") == 1
        again = await memory.episodes.get(stored[0].id)
        assert again is not None
        assert (again.status, again.attempts, again.error) == ("pending", 0, None)
        assert (await journal_after(store, start)) == [("episode", str(again.id), "retry", None, "user:u0")]
        assert await memory.episodes.retry(namespace="user:u1") == 2
        assert await memory.episodes.retry() == 1
        assert await memory.episodes.retry() == 0
        assert (await memory.episodes.counts())[EpisodeStatus.PENDING] == 5
        async with refused(store, InvalidTransition, "only a failed one"):
            await memory.episodes.retry(stored[0].id)

    async def test_many_failed_ones_are_tried_again(self, memory: HybridMemoryService, store: Store) -> None:
        row = "'user:a', 'task_log', '[]', 'failed', 1, 1, 1"
        columns = "namespace, kind, body, status, started_at, ended_at, created_at"
        for _ in range(101):
            await plant(store, f"INSERT INTO episodes ({columns}) VALUES ({row})")
        assert await memory.episodes.retry(namespace="user:a") == 101

    async def test_a_deleted_one_is_gone(self, memory: HybridMemoryService, store: Store, session: str) -> None:
        stored = await memory.store_episode(["x"], session_id=session)
        start = await last_position(store)

        await memory.episodes.delete(stored.id, actor="bot")

        assert await memory.episodes.get(stored.id) is None
        assert await peek(store, "SELECT COUNT(*) FROM episodes") == [(0,)]
        assert await journal_after(store, start) == [("episode", str(stored.id), "delete", None, "user:alice")]
        async with refused(store, EpisodeNotFound):
            await memory.episodes.delete(stored.id)

    # -- erasing

    async def test_an_erased_namespace_has_no_episodes(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        first = await memory.store_episode(["SECRET"], session_id=session, outcome="SECRET")
        failed = await memory.store_episode(["SECRET"], namespace="user:alice:work")
        await fail(store, failed)
        others = [await memory.store_episode(["x"], namespace=each) for each in ("user:al", "user:alice2", "user:bob")]
        start = await last_position(store)

        assert await memory.episodes.erase("user:alice", actor="officer", task_id="t1") == 2

        assert [each.id for each in await memory.episodes.list()] == [each.id for each in reversed(others)]
        assert await journal_after(store, start) == [
            ("episode", str(first.id), "purge", None, "user:alice"),
            ("episode", str(failed.id), "purge", None, "user:alice:work"),
            ("episode", "files", "scrub", None, None),
        ]
        [scrub, last, before] = await memory.audit(limit=3)
        assert {each.actor for each in (scrub, last, before)} == {"officer"}
        assert {each.task_id for each in (scrub, last, before)} == {"t1"}
        assert (before.session_id, last.session_id, before.payload) == (session, None, {})
        async with unchanged(store):
            assert await memory.episodes.erase("user:alice") == 0

    async def test_many_are_erased_in_batches(self, memory: HybridMemoryService, store: Store) -> None:
        row = "'user:a', 'task_log', '[]', 'pending', 1, 1, 1"
        columns = "namespace, kind, body, status, started_at, ended_at, created_at"
        values = ", ".join(f"({row})" for _ in range(201))
        await plant(store, f"INSERT INTO episodes ({columns}) VALUES {values}")
        faulty, faults = with_faults(memory)
        faults.fail("write", StoreError("out of order"), skip=2)
        with pytest.raises(StoreError, match="out of order"):
            await faulty.episodes.erase("user:a")
        assert await peek(store, "SELECT COUNT(*) FROM episodes") == [(1,)]
        assert await faulty.episodes.erase("user:a") == 1
        purged = "SELECT COUNT(DISTINCT entity_id) FROM journal WHERE operation = 'purge'"
        assert await peek(store, purged) == [(201,)]

    async def test_whoever_was_at_an_erased_one_writes_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.store_episode(["I live in Oslo."], namespace="user:alice")
        claims = Claims(store, clock)
        claim = await claims.take(60)
        assert claim is not None
        assert await memory.episodes.erase("user:alice") == 1
        origin = Origin(clock.now())
        async with refused(store, LeaseLost, "or is gone"):
            await store.write(lambda tx: claims.finish(tx, claim, origin))
        async with unchanged(store):
            assert await claims.fail(claim, "no") is None
            await claims.give_back(claim)

    async def test_a_worker_remembers_nothing_of_an_erased_one(self, memory: HybridMemoryService, store: Store) -> None:
        for statement in ("finish_episode", "put_back"):
            await memory.store_episode([{"role": "user", "text": "I live in Oslo."}], namespace="user:alice")
            faulty, faults = with_faults(memory)
            if statement == "put_back":
                faults.fail_statement("finish_episode", ValueError("unreadable"))
            faults.interleave("write", _erasing(memory), skip=1)
            report = await faulty.consolidation.flow()
            assert (report.summaries, report.facts, report.failed) == (0, 0, 0)
            assert await peek(store, "SELECT COUNT(*) FROM memory_entries") == [(0,)]
            assert await peek(store, "SELECT COUNT(*) FROM episodes") == [(0,)]

    async def test_archives_are_erased_too(self, memory: HybridMemoryService, store: Store, clock: ManualClock) -> None:
        for namespace in ("user:alice", "user:alice:work", "user:alice:work", "user:bob"):
            await consolidate(store, await memory.store_episode(["SECRET"], namespace=namespace))
        clock.advance(OLD)
        await memory.retention.apply()
        hers, work, his = await memory.retention.archives()
        await memory.retention.restore(hers.id)
        contents = parts_of(memory).contents

        assert await memory.episodes.erase("user:alice") == 3

        assert await memory.retention.archives() == Page((his,), None)
        for gone in (hers, work):
            with pytest.raises(ContentMissing):
                await contents.whole(gone.content.sha256)
            async with refused(store, ArchiveNotFound):
                await memory.retention.restore(gone.id)
        assert b"SECRET" in await contents.whole(his.content.sha256)
        assert await peek(store, "SELECT COUNT(*) FROM archives") == [(1,)]
        assert (await memory.artifacts.verify(grace=timedelta(0))).flaws == ()

    @pytest.mark.parametrize("finish", ["erase", "forget", "retention"])
    async def test_if_contents_are_down_the_rest_is_erased(
        self,
        memory: HybridMemoryService,
        store: Store,
        clock: ManualClock,
        monkeypatch: pytest.MonkeyPatch,
        finish: str,
    ) -> None:
        for namespace in ("user:alice", "user:alice:work"):
            await consolidate(store, await memory.store_episode(["SECRET"], namespace=namespace))
        clock.advance(OLD)
        await memory.retention.apply()
        first, second = await memory.retention.archives()
        await memory.store_episode(["SECRET"], namespace="user:alice")
        await memory.remember("SECRET", namespace="user:alice")
        contents = parts_of(memory).contents
        remove = contents.remove

        async def down(name: str) -> bool:
            if name == first.content.sha256:
                raise StoreUnavailable("nobody answers")
            return await remove(name)

        with monkeypatch.context() as outage:
            outage.setattr(contents, "remove", down)
            with pytest.raises(StoreUnavailable, match=r"3 episodes erased .* left in an archive.*nobody answers"):
                await memory.forget("user:alice", erase=True)
            await memory.retention.apply()  # which cannot remove it either, and goes on
        assert await peek(store, "SELECT COUNT(*) FROM episodes") == [(0,)]
        assert await peek(store, "SELECT COUNT(*) FROM memory_entries WHERE namespace <> ''") == [(0,)]
        assert await memory.retention.archives() == Page((), None)
        async with refused(store, ArchiveNotFound):
            await memory.retention.restore(first.id)
        with pytest.raises(ContentMissing):
            await contents.whole(second.content.sha256)

        again: dict[str, Callable[[], Awaitable[object]]] = {
            "erase": lambda: memory.episodes.erase("user:alice"),
            "forget": lambda: memory.forget("user:alice", erase=True),
            "retention": memory.retention.apply,
        }
        await again[finish]()
        with pytest.raises(ContentMissing):
            await contents.whole(first.content.sha256)
        assert await peek(store, "SELECT COUNT(*) FROM archives") == [(0,)]

    async def test_what_moves_to_an_archive_or_back_meanwhile_is_erased(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await consolidate(store, await memory.store_episode(["SECRET"], namespace="user:alice"))
        clock.advance(OLD)
        faulty, faults = with_faults(memory)
        faults.interleave("write", _applying(memory))
        assert await faulty.episodes.erase("user:alice") == 1
        assert await memory.retention.archives() == Page((), None)

        await consolidate(store, await memory.store_episode(["SECRET"], namespace="user:alice"))
        clock.advance(OLD)
        await memory.retention.apply()
        [archive] = await memory.retention.archives()
        faults.interleave("write", _erasing(memory))  # it has read what is in the archive by then
        report = await faulty.retention.restore(archive.id)
        assert (report.memories, len(report.skipped)) == (0, 1)
        assert await peek(store, "SELECT COUNT(*) FROM episodes") == [(0,)]

    async def test_forgetting_for_good_takes_the_episodes_along(self, memory: HybridMemoryService) -> None:
        await memory.store_episode(["x"], namespace="user:alice")
        kept = await memory.store_episode(["x"], namespace="user:alice:work")
        for key in ("a", "b", "c"):
            await memory.remember("x", namespace="user:alice", key=key)
        assert await memory.forget("user:alice", "a", erase=True) == 1
        assert await memory.forget("user:alice") == 2
        assert sum((await memory.episodes.counts("user:alice")).values()) == 2
        assert await memory.forget("user:alice:play", erase=True) == 0
        assert await memory.episodes.get(kept.id) == kept
        assert await memory.forget("user:alice", erase=True) == 4
        assert sum((await memory.episodes.counts()).values()) == 0
        assert await memory.forget("user:alice", erase=True) == 0

    async def test_what_a_crash_left_in_the_files_is_scrubbed_by_the_next(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.store_episode(["x"], namespace="user:alice")
        faulty, faults = with_faults(memory)
        faults.fail("scrub", StoreError("out of order"))
        with pytest.raises(StoreError, match="out of order"):
            await faulty.episodes.erase("user:alice")
        assert await faulty.episodes.erase("user:bob") == 0
        assert faults.calls["scrub"] == 2
        assert (await memory.audit(limit=1))[0].operation == "scrub"
        await faulty.episodes.erase("user:bob")
        assert faults.calls["scrub"] == 2

    async def test_it_outlives_its_session(self, memory: HybridMemoryService, session: str) -> None:
        stored = await memory.store_episode(["x"], session_id=session)
        await memory.sessions.delete_session(session)
        assert await memory.episodes.get(stored.id) == stored

    async def test_a_principal_has_the_episodes_of_its_namespaces(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        hers = await memory.store_episode(["hers"], session_id=session)
        his = await memory.store_episode(["his"], namespace="user:bob")
        await fail(store, his)
        writer = memory.as_principal(Principal("alice-bot", {"user:alice": "write"}))
        reader = memory.as_principal(Principal("reader", {"user:alice": "read"}))
        guest = memory.as_principal(Principal("guest", {"session:s1": "admin"}))
        owner = memory.as_principal(Principal("alice", {"user:alice": "admin"}))

        assert await reader.episodes.list() == await memory.episodes.list(namespace="user:alice")
        assert await reader.episodes.get(his.id) is None
        assert sum((await reader.episodes.counts()).values()) == 1
        made = await writer.store_episode(["more"], session_id=session, actor="bob")
        assert made.created_by == "alice-bot"
        assert await writer.episodes.retry() == 0
        denied: list[tuple[type[Exception], Callable[[], Awaitable[object]]]] = [
            (AccessDenied, lambda: reader.store_episode(["x"], namespace="user:alice")),
            (SessionNotFound, lambda: reader.store_episode(["x"], namespace="user:alice", session_id=session)),
            (AccessDenied, lambda: reader.episodes.delete(hers.id)),
            (AccessDenied, lambda: writer.store_episode(["x"], namespace="user:bob")),
            (AccessDenied, lambda: writer.episodes.list(namespace="user:bob")),
            (AccessDenied, lambda: writer.episodes.counts("user:bob")),
            (AccessDenied, lambda: writer.episodes.retry(namespace="user:bob")),
            (EpisodeNotFound, lambda: writer.episodes.retry(his.id)),
            (EpisodeNotFound, lambda: writer.episodes.delete(his.id)),
            (AccessDenied, lambda: writer.episodes.erase("user:alice")),
            (AccessDenied, lambda: owner.episodes.erase("user:bob")),
            (AccessDenied, lambda: owner.forget("user:bob", erase=True)),
            (AccessDenied, lambda: writer.forget("user:alice", erase=True)),
            (AccessDenied, lambda: guest.store_episode(["x"], session_id=session)),
        ]
        for error, call in denied:
            async with refused(store, error):
                await call()
        assert await owner.episodes.erase("user:alice", actor="bob") == 2
        assert (await memory.audit(entity="episode", limit=1))[0].actor == "alice"
        assert (await memory.episodes.list()).items[0].id == his.id

    async def test_what_cannot_be_used_is_refused(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        two, strange = {"kind": "negotiation", "participants": ["a", "b"]}, object()

        def storing(entries: Any = ("x",), **told: Any) -> Callable[[], Awaitable[object]]:
            given: dict[str, Any] = {"namespace": "user:a", **told}
            return lambda: memory.store_episode(entries, **given)

        bad: list[tuple[type[Exception], Callable[[], Awaitable[object]]]] = [
            (InvalidInput, storing("a text")),
            (InvalidInput, storing(5)),
            (InvalidInput, storing([])),
            (InvalidValue, storing([b"bytes"])),
            (ValueTooLarge, storing(["x" * 1_048_577])),
            (InvalidInput, storing(["x" * 600_000] * 2)),
            (InvalidIdentifier, storing([EpisodeEntry("x", author="a\nb")])),
            (InvalidInput, storing([EpisodeEntry("x", at="now")])),  # type: ignore[arg-type]
            (InvalidInput, storing(namespace=None)),
            (InvalidNamespace, storing(namespace="users")),
            (InvalidNamespace, storing(namespace="user:" + ":".join(["x" * 100] * 10) + "y" * 8)),
            (SessionNotFound, storing(session_id="nobody")),
            (InvalidIdentifier, storing(session_id=1)),
            (InvalidStatus, storing(kind="dream")),
            (InvalidIdentifier, storing(title="a\nb")),
            (InvalidInput, storing(participants="alice")),
            (InvalidInput, storing(participants=["a", "a"])),
            (InvalidIdentifier, storing(participants=[1])),
            (InvalidInput, storing(kind="negotiation", participants=["a"])),
            (InvalidInput, storing(offers=[Offer("a", 1)])),
            (InvalidInput, storing(participants=["a", "b"], offers=[Offer("a", 1)])),
            (InvalidInput, storing(**two, offers=Offer("a", 1))),
            (InvalidInput, storing(**two, offers=[Offer("c", 1)])),
            (InvalidInput, storing(**two, offers=[{"by": "a"}])),
            (InvalidInput, storing(**two, offers=["a offers 1"])),
            (InvalidValue, storing(**two, offers=[Offer("a", strange)])),
            (InvalidValue, storing(outcome=strange)),
            (InvalidInput, storing(metadata=[1])),
            (InvalidInput, storing(started_at=clock.moment, ended_at=clock.moment - timedelta(seconds=1))),
            (InvalidInput, storing(started_at="yesterday")),
            (InvalidStatus, lambda: memory.episodes.list(status="done")),
            (InvalidStatus, lambda: memory.episodes.list(kind="dream")),
            (InvalidInput, lambda: memory.episodes.list(limit=0)),
            (InvalidCursor, lambda: memory.episodes.list(cursor="nonsense")),
            (InvalidInput, lambda: memory.episodes.get(0)),
            (InvalidInput, lambda: memory.episodes.get("1")),  # type: ignore[arg-type]
            (EpisodeNotFound, lambda: memory.episodes.retry(99)),
            (InvalidNamespace, lambda: memory.episodes.erase("")),
            (InvalidNamespace, lambda: memory.episodes.erase("users")),
            (InvalidIdentifier, lambda: memory.episodes.erase("user:a", actor=1)),  # type: ignore[arg-type]
        ]
        for error, call in bad:
            async with refused(store, error):
                await call()
        async with unchanged(store):
            assert await memory.episodes.get(99) is None
