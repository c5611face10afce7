"""Followers in other processes hear of commits through LISTEN and NOTIFY, and go on when the server was away."""

import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from mnemon.backends.postgres.connection import Location
from mnemon.backends.postgres.follower import Followers
from mnemon.backends.postgres.opening import open_blocking
from mnemon.coroutines import complete
from mnemon.ports import Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Query

TOUCH = Query("touch", "INSERT INTO consumers (name, updated_at) VALUES ('x', 0) ON CONFLICT (name) DO NOTHING")
PATIENCE = 30


class Waiter(threading.Thread):
    """Notes when it is woken, again and again."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.woken: list[float] = []
        self._store = store
        self._stopped = False

    def run(self) -> None:
        while not self._stopped:
            ticket = self._store.ticket()
            complete(self._store.wait(ticket, 0.3))
            if self._store.ticket() != ticket:
                self.woken.append(time.monotonic())

    def stop(self) -> None:
        self._stopped = True
        self.join(PATIENCE)

    def settle(self) -> None:
        """Wait until the listener listens and nothing more comes of what was before."""
        until(lambda: self.woken)
        seen = 0
        while seen != len(self.woken):
            seen = len(self.woken)
            time.sleep(0.1)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def stores(postgres_server: str, postgres_schema: str) -> Iterator[tuple[Store, Store]]:
    """Two that know of each other only through the server, as in two processes."""
    settings = Settings(url=f"{postgres_server}?application_name={postgres_schema}", postgres_schema=postgres_schema)
    first, second = open_blocking(settings).store, open_blocking(settings).store
    yield first, second
    complete(first.close())
    complete(second.close())


@pytest.fixture
def waiter(stores: tuple[Store, Store]) -> Iterator[Waiter]:
    """Somebody who waits for commits of the first store at the second."""
    waiting = Waiter(stores[1])
    waiting.start()
    yield waiting
    waiting.stop()


def write(store: Store) -> None:
    complete(store.write(lambda tx: tx.execute(TOUCH, {})))


def end_sessions(url: str, schema: str, doing: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
            "WHERE application_name = %s AND query LIKE %s",
            [schema, doing],
        ).fetchone()
        return row[0] if row else 0


def test_a_commit_of_another_process_wakes_at_once(stores: tuple[Store, Store], waiter: Waiter) -> None:
    write(stores[0])
    waiter.settle()
    delays: list[float] = []
    for _ in range(30):
        seen = len(waiter.woken)
        write(stores[0])
        committed = time.monotonic()
        until(lambda seen=seen: len(waiter.woken) > seen)
        delays.append(waiter.woken[seen] - committed)
        time.sleep(0.01)
    assert statistics.median(delays) < 0.05  # far below the second after which a follower looks by itself


def test_a_commit_wakes_its_own_process_once(stores: tuple[Store, Store]) -> None:
    # given a process that also listens to the others
    own = Waiter(stores[0])
    own.start()
    try:
        write(stores[0])
        own.settle()
        seen = len(own.woken)
        # when it commits, then it wakes its followers itself, and what comes back from the server is ignored
        write(stores[0])
        own.settle()
        assert len(own.woken) == seen + 1
    finally:
        own.stop()


def test_many_commits_take_few_notifications(
    stores: tuple[Store, Store], postgres_server: str, postgres_schema: str
) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"LISTEN {postgres_schema}")
        write(stores[0])
        assert next(connection.notifies(timeout=PATIENCE)).channel == postgres_schema
        for _ in range(100):
            write(stores[0])
        heard = list(connection.notifies(timeout=0.5))
    assert 1 <= len(heard) < 100


def test_the_transaction_that_writes_does_not_notify(
    stores: tuple[Store, Store], postgres_server: str, postgres_schema: str
) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"LISTEN {postgres_schema}")

        async def unit(tx: Transaction) -> int:
            [(pid,)] = await tx.fetch_all(Query("pid", "SELECT pg_backend_pid()"), {})
            return pid

        writer = complete(stores[0].write(unit))
        [heard] = connection.notifies(timeout=PATIENCE, stop_after=1)
    assert heard.pid != writer


@pytest.mark.parametrize("doing", ["LISTEN%", "%pg_notify%"])
def test_followers_are_woken_again_after_a_connection_was_lost(
    stores: tuple[Store, Store], waiter: Waiter, postgres_server: str, postgres_schema: str, doing: str
) -> None:
    write(stores[0])
    waiter.settle()
    # given that the listener's or the notifier's session is ended
    assert end_sessions(postgres_server, postgres_schema, doing) == 1
    # when something is committed some time later, then it is heard of as before
    for _ in range(3):
        waiter.settle()
        seen = len(waiter.woken)
        write(stores[0])
        until(lambda seen=seen: len(waiter.woken) > seen)


def test_what_is_committed_while_nobody_listened_is_noticed(
    stores: tuple[Store, Store], waiter: Waiter, postgres_server: str, postgres_schema: str
) -> None:
    waiter.settle()
    seen = len(waiter.woken)
    assert end_sessions(postgres_server, postgres_schema, "LISTEN%") == 1
    write(stores[0])
    until(lambda: len(waiter.woken) > seen)


def test_the_last_commit_before_closing_is_told(
    stores: tuple[Store, Store], waiter: Waiter, postgres_server: str, postgres_schema: str
) -> None:
    waiter.settle()
    seen = len(waiter.woken)
    brief = open_blocking(Settings(url=postgres_server, postgres_schema=postgres_schema)).store
    write(brief)
    complete(brief.close())
    until(lambda: len(waiter.woken) > seen)


def test_followers_of_a_server_that_is_away_stop_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    followers = Followers(Location.parse(Settings(url=f"postgresql://nobody@127.0.0.1:{port}/nowhere")))
    followers.listen()
    followers.wake()
    time.sleep(0.3)  # both have tried in vain, and pause
    began = time.monotonic()
    followers.stop()
    followers.stop()
    followers.wake()
    assert time.monotonic() - began < 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("mnemon-")]
