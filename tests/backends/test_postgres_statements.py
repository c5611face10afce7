"""Statements are rewritten for psycopg without a change of meaning."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mnemon.backends.postgres.opening import open_async
from mnemon.backends.postgres.statements import grouped, translate
from mnemon.ports import Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Query, load

UPSERT = load("state")["merge_entry_returning"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("SELECT :a, :a, :b_2", b"SELECT %(a)s, %(a)s, %(b_2)s"),
        ("SELECT :a::text, 'x'::text", b"SELECT %(a)s::text, 'x'::text"),
        ("SELECT ':a', 'it''s :b', :c", b"SELECT ':a', 'it''s :b', %(c)s"),
        ("SELECT 7 % :a, '100%'", b"SELECT 7 %% %(a)s, '100%%'"),
        ("SELECT x[1:2]", b"SELECT x[1:2]"),
    ],
)
def test_parameters_are_renamed_and_nothing_else(written: str, sent: bytes) -> None:
    assert translate(written) == sent


def test_an_insert_of_several_rows_is_one_statement() -> None:
    insert = "INSERT INTO t (a, b) VALUES (:a, :b) RETURNING id"
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    [(statement, params)] = grouped(insert, rows)
    assert statement == b"INSERT INTO t (a, b) VALUES (%(a_0)s, %(b_0)s), (%(a_1)s, %(b_1)s) RETURNING id"
    assert params == {"a_0": 1, "b_0": 2, "a_1": 3, "b_1": 4}


def test_a_row_alone_and_other_statements_stay_as_they_are() -> None:
    insert, update = "INSERT INTO t (a) VALUES (:a)", "UPDATE t SET a = :a"
    assert list(grouped(insert, [{"a": 1}])) == [(translate(insert), {"a": 1})]
    assert list(grouped(insert, [])) == []
    assert list(grouped(update, [{"a": 1}, {"a": 2}])) == [(translate(update), {"a": 1}), (translate(update), {"a": 2})]
    for unlike in (
        "INSERT INTO t (a) VALUES (:a) ON CONFLICT (a) DO UPDATE SET b = :b",
        "INSERT INTO t (a) VALUES (lower(:a))",
        "INSERT INTO t (a) VALUES (:x) ON CONFLICT (a) DO UPDATE SET b = 1",
    ):
        assert len(list(grouped(unlike, [{"a": 1, "b": 1, "x": 1}] * 2))) == 2


def test_an_upsert_meets_a_key_once_in_each_statement() -> None:
    rows = [{"namespace": "n", "key": key, "value": "1", "now": 0} for key in "abcadb"]
    groups = [params for _, params in grouped(UPSERT.text, rows)]
    assert [sorted(v for k, v in group.items() if k.startswith("key")) for group in groups] == [
        ["a", "b", "c"],
        ["a", "b", "d"],
    ]


def test_a_long_batch_takes_several_statements() -> None:
    rows = [{"a": number} for number in range(120)]
    groups = [params for _, params in grouped("INSERT INTO t (a) VALUES (:a)", rows)]
    assert [value for group in groups for value in group.values()] == list(range(120))
    assert 1 < len(groups) < 10


@pytest_asyncio.fixture
async def store(postgres_server: str, postgres_schema: str) -> AsyncIterator[Store]:
    backend = await open_async(Settings(url=postgres_server, postgres_schema=postgres_schema))
    yield backend.store
    await backend.store.close()


async def test_answers_to_several_rows_come_in_their_order(store: Store) -> None:
    # given keys of which some are there already, with versions of their own
    def row(key: str) -> dict[str, Any]:
        return {"namespace": "app:a", "key": key, "value": "1", "now": 0}

    keys = [f"k{number:03}" for number in range(130)]
    for repeats, key in enumerate(keys[::13]):
        for _ in range(repeats):
            await store.write(lambda tx, key=key: tx.fetch_each(UPSERT, [row(key)]))
    expected = [(keys[::13].index(key) + 1 if key in keys[::13] else 1,) for key in keys]
    # when all are written in one go, backwards
    keys.reverse()

    async def unit(tx: Transaction) -> list[Any]:
        return await tx.fetch_each(UPSERT, [row(key) for key in keys])

    # then each answer stands where its row stood
    assert await store.write(unit) == expected[::-1]
    # and a row that comes twice in one call is written twice
    again = [row("k001"), row("k002"), row("k001")]
    assert await store.write(lambda tx: tx.fetch_each(UPSERT, again)) == [(2,), (2,), (3,)]


async def test_a_percent_sign_and_a_cast_reach_the_server_as_they_are(store: Store) -> None:
    query = Query("q", "SELECT 7 % :three, 'a%:b', '{\"x\": 1}'::json ->> 'x', :text::text LIKE '5%'")
    assert await store.fetch(query, {"three": 3, "text": "50"}) == [(1, "a%:b", "1", True)]
