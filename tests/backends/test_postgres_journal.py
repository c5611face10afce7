"""The journal on PostgreSQL is safe to tail: a position never appears below one that was read."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from mnemon.backends.postgres.database import BlockingPostgres
from mnemon.backends.postgres.opening import open_blocking
from mnemon.coroutines import complete
from mnemon.ports import Store
from mnemon.settings import Settings
from mnemon.sql import Query

WRITERS = 8
TRANSACTIONS = 60
PATIENCE = 30

_READ = Query("read", "SELECT position FROM journal WHERE position > :after AND position <= :horizon ORDER BY position")
_ENDLESS = 2**63 - 1


@pytest.fixture
def store(postgres_server: str, postgres_schema: str) -> Iterator[Store]:
    yield from opened(postgres_server, postgres_schema)


def opened(url: str, schema: str) -> Iterator[Store]:
    backend = open_blocking(Settings(url=url, postgres_schema=schema))
    assert isinstance(backend.store, BlockingPostgres)
    yield backend.store
    complete(backend.store.close())


@pytest.fixture
def connect(store: Store, postgres_server: str) -> Iterator[Callable[[], "psycopg.Connection"]]:
    """Connections of somebody who does not even know the search path."""
    made: list[psycopg.Connection] = []

    def make() -> psycopg.Connection:
        made.append(psycopg.connect(postgres_server))
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def append(connection: psycopg.Connection, schema: str) -> int:
    row = connection.execute(
        f"INSERT INTO {schema}.journal (at, entity, entity_id, operation) VALUES (0, 'x', 'x', 'x') RETURNING position"
    ).fetchone()
    assert row is not None
    return row[0]


def horizon(store: Store) -> int:
    return complete(store.fetch(store.dialect.horizon, {}))[0][0]


def read(store: Store, after: int, upto: int) -> list[int]:
    return [position for (position,) in complete(store.fetch(_READ, {"after": after, "horizon": upto}))]


def tail(store: Store, after: int) -> list[int]:
    """What a follower sees next."""
    return read(store, after, horizon(store))


def naive_tail(store: Store, after: int) -> list[int]:
    """What a follower would see that takes every position it finds for the last word."""
    return read(store, after, _ENDLESS)


Connect = Callable[[], psycopg.Connection]


def test_a_fresh_journal_ends_at_nought(store: Store, connect: Connect, postgres_schema: str) -> None:
    assert horizon(store) == 0
    with connect() as connection:
        assert append(connection, postgres_schema) == 1
        assert horizon(store) == 0
    assert horizon(store) == 1


def test_a_late_commit_is_not_skipped(store: Store, connect: Connect, postgres_schema: str) -> None:
    # given a transaction that got its position first and one that commits first
    late, early = connect(), connect()
    assert append(late, postgres_schema) == 1
    assert append(early, postgres_schema) == 2
    early.commit()
    # when both followers read, the naive one believes that it has seen everything up to 2
    assert tail(store, 0) == []
    assert naive_tail(store, 0) == [2]
    # then it never sees what is committed late, while ours sees both, once and in order
    late.commit()
    assert naive_tail(store, 2) == []
    assert tail(store, 0) == [1, 2]
    assert tail(store, 2) == []


def test_a_long_transaction_holds_the_horizon_back_until_it_ends(
    store: Store, connect: Connect, postgres_schema: str
) -> None:
    with connect() as connection:
        append(connection, postgres_schema)
    for end in ("commit", "rollback", "close"):
        # given a transaction that has a position and does not end
        slow = connect()
        position = append(slow, postgres_schema)
        for _ in range(3):
            with connect() as connection:
                last = append(connection, postgres_schema)
            assert horizon(store) == position - 1
        # when it does, however that is
        getattr(slow, end)()
        # then all is released (a connection that is closed takes the server a moment)
        deadline = time.monotonic() + PATIENCE
        while horizon(store) != last:
            assert end == "close"
            assert time.monotonic() < deadline


def test_a_transaction_without_a_position_holds_nothing_back(
    store: Store, connect: Connect, postgres_schema: str
) -> None:
    idle = connect()
    idle.execute(f"SELECT count(*) FROM {postgres_schema}.journal")
    idle.execute(f"INSERT INTO {postgres_schema}.consumers (name, updated_at) VALUES ('x', 0)")
    with connect() as connection:
        position = append(connection, postgres_schema)
    assert horizon(store) == position


def test_a_savepoint_that_is_rolled_back_does_not_free_what_follows(
    store: Store, connect: Connect, postgres_schema: str
) -> None:
    # given a transaction whose first position is undone with a savepoint
    slow = connect()
    slow.execute("SAVEPOINT here")
    append(slow, postgres_schema)
    slow.execute("ROLLBACK TO SAVEPOINT here")
    with connect() as connection:
        passed = append(connection, postgres_schema)
    assert horizon(store) == passed
    # when it takes another one
    position = append(slow, postgres_schema)
    with connect() as connection:
        append(connection, postgres_schema)
    # then that one is waited for
    assert horizon(store) == position - 1


def test_positions_of_more_than_32_bits_are_held_back_too(store: Store, connect: Connect, postgres_schema: str) -> None:
    beyond = 5 * 2**32 + 7
    with connect() as connection:
        connection.execute(f"SELECT setval('{postgres_schema}.journal_position', {beyond})")
    assert horizon(store) == beyond
    slow = connect()
    assert append(slow, postgres_schema) == beyond + 1
    with connect() as connection:
        append(connection, postgres_schema)
    assert horizon(store) == beyond
    slow.commit()
    assert horizon(store) == beyond + 2


def test_locks_of_other_programs_hold_nothing_back(store: Store, connect: Connect, postgres_schema: str) -> None:
    other = connect()
    for lock in ("pg_advisory_lock(0)", "pg_advisory_lock_shared(1)", "pg_advisory_lock_shared(1, 0)"):
        other.execute(f"SELECT {lock}")
    with connect() as connection:
        position = append(connection, postgres_schema)
    assert horizon(store) == position


def test_schemas_in_one_database_do_not_hold_each_other_up(
    store: Store, connect: Connect, postgres_server: str, postgres_schema: str
) -> None:
    neighbour = f"{postgres_schema}_n"
    try:
        for other in opened(postgres_server, neighbour):
            slow = connect()
            append(slow, neighbour)
            with connect() as connection:
                position = append(connection, postgres_schema)
                append(connection, neighbour)
            assert horizon(store) == position
            assert horizon(other) == 0
            slow.rollback()
            assert horizon(other) == 2
    finally:
        with connect() as connection:
            connection.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {neighbour} CASCADE")


def test_a_transaction_over_two_schemas_holds_both_back(
    store: Store, connect: Connect, postgres_server: str, postgres_schema: str
) -> None:
    neighbour = f"{postgres_schema}_n"
    try:
        for other in opened(postgres_server, neighbour):
            both = connect()
            for schema in (postgres_schema, neighbour, postgres_schema):
                append(both, schema)
            for schema in (postgres_schema, neighbour):
                with connect() as connection:
                    append(connection, schema)
            assert (horizon(store), horizon(other)) == (0, 0)
            both.commit()
            assert (horizon(store), horizon(other)) == (3, 2)
    finally:
        with connect() as connection:
            connection.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {neighbour} CASCADE")


class Follower(threading.Thread):
    """Reads on and on, each time from where it had come to."""

    def __init__(self, store: Store, look: Callable[[Store, int], list[int]]) -> None:
        super().__init__()
        self.seen: list[int] = []
        self._store = store
        self._look = look
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            self._step()
        self._step()  # what was committed since the last look

    def _step(self) -> None:
        self.seen += self._look(self._store, max(self.seen, default=0))

    def stop(self) -> None:
        self._stopped.set()
        self.join(PATIENCE)


def write_at_random(connection: psycopg.Connection, schema: str, seed: int) -> None:
    """Short and long transactions, some of them rolled back, wholly or in part."""
    chance = random.Random(seed)
    for _ in range(TRANSACTIONS):
        for _ in range(chance.randint(1, 3)):
            connection.execute("SAVEPOINT here")
            append(connection, schema)
            if chance.random() < 0.2:
                connection.execute("ROLLBACK TO SAVEPOINT here")
            time.sleep(chance.choice((0, 0, 0.001, 0.01)))
        connection.rollback() if chance.random() < 0.2 else connection.commit()


def test_followers_of_racing_writers_neither_skip_nor_repeat(
    store: Store, connect: Connect, postgres_schema: str
) -> None:
    # given followers of ours and a naive one
    followers = [Follower(store, tail) for _ in range(2)]
    naive = Follower(store, naive_tail)
    for follower in (*followers, naive):
        follower.start()
    # when writers race, with pauses between taking a position and committing it
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write_at_random, connect(), postgres_schema, seed) for seed in range(WRITERS)]
        for each in writing:
            each.result()
    for follower in (*followers, naive):
        follower.stop()
    # then ours have seen every position that was committed, once, in order
    committed = naive_tail(store, 0)
    assert len(committed) > WRITERS * TRANSACTIONS / 2
    for follower in followers:
        assert follower.seen == committed
    # and the naive one has not: the race that it loses has really been run
    assert naive.seen != committed
    assert set(naive.seen) < set(committed)
