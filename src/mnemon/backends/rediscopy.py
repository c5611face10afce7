"""The copy of working memory in Redis, or what speaks its protocol.

    mnemon:<app>:<session>:buffer:<name>       sorted set: an item's sequence and the item as JSON
    mnemon:<app>:<session>:pad:<name>          sorted set: 1 and the scratchpad as JSON
    mnemon:<app>:<session>:head:buffer:<name>  hash: where that copy stands; and so for pads
    mnemon:<app>:<session>:copies              set: the keys of all copies of the session
    mnemon:<app>:<session>                     channel: kind, name and journal position of every change

Every step is one script, and every key has a time to live. A head says of which session the copy is (by when that
was made) and at which position of the journal it stands; a reader asks for the position that the database has.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from mnemon.errors import InvalidSettings, StoreUnavailable
from mnemon.ports import CopyChange, CopyPlace, CopyRead

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError:
    raise InvalidSettings("redis_url needs the client library: pip install 'mnemon[redis]'") from None

_PATIENCE = 0.5  # seconds
_KEPT = 500
_PAUSE = 0.5

_READ = """
local head = redis.call('HMGET', KEYS[2], 'era', 'position', 'whole', 'count')
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2] or tonumber(head[4]) ~= redis.call('ZCARD', KEYS[1]) then return false end
local found = redis.call('ZREVRANGE', KEYS[1], 0, ARGV[3] - 1)
if head[3] ~= '1' and #found < tonumber(ARGV[3]) then return false end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[4]) end
return {head[3], found}
"""

_FILL = """
local head = redis.call('HMGET', KEYS[2], 'era', 'position')
if head[1] == ARGV[1] and tonumber(head[2]) > tonumber(ARGV[2]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
for at = 5, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[at], ARGV[at + 1]) end
redis.call('HSET', KEYS[2], 'era', ARGV[1], 'position', ARGV[2], 'whole', ARGV[3],
           'count', redis.call('ZCARD', KEYS[1]))
redis.call('SADD', KEYS[3], KEYS[1], KEYS[2])
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[4]) end
return 1
"""

_APPLY = """
redis.call('PUBLISH', ARGV[6], ARGV[7])
local head = redis.call('HMGET', KEYS[2], 'era', 'position', 'whole', 'count')
if head[1] == ARGV[1] and tonumber(head[2]) >= tonumber(ARGV[3]) then return 0 end
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2] or tonumber(head[4]) ~= redis.call('ZCARD', KEYS[1]) then
  return redis.call('DEL', KEYS[1], KEYS[2])
end
local first = 9 + ARGV[8]
for at = 9, first - 1 do redis.call('ZREMRANGEBYSCORE', KEYS[1], ARGV[at], ARGV[at]) end
for at = first, #ARGV, 2 do
  redis.call('ZREMRANGEBYSCORE', KEYS[1], ARGV[at], ARGV[at])
  redis.call('ZADD', KEYS[1], ARGV[at], ARGV[at + 1])
end
local whole = head[3]
if redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[5]) > 0 then whole = '0' end
redis.call('HSET', KEYS[2], 'position', ARGV[3], 'whole', whole, 'count', redis.call('ZCARD', KEYS[1]))
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[4]) end
return 1
"""

_DROP = """
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do redis.call('DEL', key) end
return redis.call('DEL', KEYS[1])
"""


class RedisCopy:
    """A `WorkingCopy` in Redis. `ttl` is how many seconds a copy stays that nobody uses."""

    def __init__(self, url: str, ttl: float) -> None:
        try:
            self._client: Any = cast("Any", redis).Redis.from_url(
                url,
                socket_timeout=_PATIENCE,
                socket_connect_timeout=_PATIENCE,
                retry=Retry(NoBackoff(), 0),
                decode_responses=True,
            )
        except ValueError as error:
            raise InvalidSettings(f"redis_url cannot be used: {error}") from None  # with the password in it
        self._ttl = max(1, round(ttl))
        scripts = {"read": _READ, "fill": _FILL, "apply": _APPLY, "drop": _DROP}
        self._scripts = {name: self._client.register_script(text) for name, text in scripts.items()}
        self._listener: threading.Thread | None = None
        self._heard: set[Callable[[], None]] = set()
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def read(self, place: CopyPlace, position: int, limit: int) -> CopyRead | None:
        found = self._call("read", _keys(place), place.created_at, position, limit, self._ttl)
        return None if found is None else CopyRead(found[1], found[0] == "1")

    def fill(self, place: CopyPlace, position: int, entries: Sequence[tuple[int, str]], whole: bool) -> None:
        flat = [part for entry in entries for part in entry]
        self._call("fill", _keys(place), place.created_at, position, int(whole), self._ttl, *flat)

    def apply(self, change: CopyChange) -> None:
        place = change.place
        channel, told = _root(place.app_name, place.session_id), f"{place.kind}:{place.name}:{change.position}"
        flat = [part for entry in change.added for part in entry]
        self._call(
            "apply", _keys(place), place.created_at, change.base, change.position, self._ttl, _KEPT, channel, told,
            len(change.removed), *change.removed, *flat,
        )  # fmt: skip

    def drop_session(self, app_name: str, session_id: str) -> None:
        self._call("drop", [f"{_root(app_name, session_id)}:copies"])

    def listen(self, heard: Callable[[], None]) -> None:
        with self._lock:
            self._heard.add(heard)
            if self._listener is None and not self._closed.is_set():
                self._listener = threading.Thread(target=self._listen, name="mnemon-working", daemon=True)
                self._listener.start()

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.join()
        self._client.close()

    def _call(self, script: str, keys: Sequence[str], *arguments: Any) -> Any:
        try:
            return self._scripts[script](keys=keys, args=arguments)
        except redis.RedisError as error:
            raise StoreUnavailable(f"Redis cannot be used: {error}") from error

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                self._hear()
            except redis.RedisError:
                self._closed.wait(_PAUSE)

    def _hear(self) -> None:
        with self._client.pubsub(ignore_subscribe_messages=True) as subscription:
            subscription.psubscribe("mnemon:*")
            while not self._closed.is_set():
                if subscription.get_message(timeout=0.2):
                    for heard in tuple(self._heard):
                        heard()


def _root(app_name: str, session_id: str) -> str:
    return f"mnemon:{app_name}:{session_id}"


def _keys(place: CopyPlace) -> list[str]:
    root = _root(place.app_name, place.session_id)
    return [f"{root}:{place.kind}:{place.name}", f"{root}:head:{place.kind}:{place.name}", f"{root}:copies"]
