"""Whoever steals the files learns nothing of what was done in a chosen namespace, whatever was done."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

import mnemon
from mnemon.encryption.masters import new_master_key
from tests.encryption.living import Life, Secrets, bytes_below, live
from tests.servers import Server
from tests.working.conftest import durable_valkey, valkey  # noqa: F401 - fixtures

KEY = new_master_key("k1")
SETTINGS: dict[str, Any] = {
    "encrypted_namespaces": ("user:alice", "app:helpdesk", "project:secret"), "encryption_keys": (KEY,),
    "background": False, "max_events_kept": 5,
}  # fmt: skip
ALICE = Life("s-alice", "alice", "helpdesk", "project:secret:files")
BOB = Life("s-bob", "bob", "frontdesk", "project:open:files")


def in_redis(client: "redis.Redis") -> Iterator[bytes]:
    """All keys, and all that they hold."""
    for key in client.scan_iter():
        yield key
        kind = client.type(key)
        if kind == b"string":
            yield client.get(key) or b""
        elif kind == b"hash":
            yield repr(client.hgetall(key)).encode()
        elif kind == b"set":
            yield repr(client.smembers(key)).encode()
        elif kind == b"zset":
            yield b"\n".join(client.zrange(key, 0, -1))
        else:
            raise AssertionError(f"{key} is a {kind}, which is not looked into")


@pytest.mark.servers
async def test_files_and_redis_give_nothing_up(tmp_path: Path, valkey: Server):  # noqa: F811
    """Given the same life in a chosen and in an open namespace, then only words of the second are in any byte."""
    hers, his = Secrets("kzqv"), Secrets("xwjp")
    settings = {**SETTINGS, "working_store": "redis", "redis_url": valkey.url, "embedder": "static"}
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", **settings) as memory:
        await live(memory, hers, ALICE)
        await live(memory, his, BOB)
        with redis.Redis.from_url(valkey.url) as client:
            copied = list(in_redis(client))
        meanwhile = list(bytes_below(tmp_path, valkey.directory))  # with all logs, as they grow
    everything = [*copied, *meanwhile, *bytes_below(tmp_path)]
    assert hers.found_in(everything) == set()
    assert his.found_in(everything) == set(his.told)
    assert his.found_in(copied), "nothing was copied to Redis"


@pytest.mark.servers
async def test_no_table_of_postgresql_gives_anything_up(postgres_server: str, tmp_path: Path):
    schema = "encryption_of_all"
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    hers, his = Secrets("kzqv"), Secrets("xwjp")
    settings = {**SETTINGS, "embedder": "static", "content_url": f"file://{tmp_path}/files"}
    async with mnemon.open(postgres_server, postgres_schema=schema, **settings) as memory:
        await live(memory, hers, ALICE)
        await live(memory, his, BOB)
    with psycopg.connect(postgres_server) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
        assert len(tables) > 20
        rows = [
            str(row).encode()
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {schema}.{table} AS t").fetchall()
        ]
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    found = [*rows, *bytes_below(tmp_path)]
    assert hers.found_in(found) == set()
    assert len(his.found_in(found)) > len(his.told) // 2
