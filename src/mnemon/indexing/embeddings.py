"""Every memory gets its words and its vectors, also those that could not have them when they were written.

The consumer `embeddings` follows the memories: whatever says something and lacks a vector in a space that is written to
(because the embedder was down or off) gets it, and whatever is live and lacks words, as after a migration of the
schema, gets those. The same work from the journal's beginning fills a new space: see `reembedding`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemon import journal
from mnemon.clock import Clock
from mnemon.consumers import Consumer
from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.errors import EmbedderUnavailable
from mnemon.indexing.duties import AT_ONCE, BATCH, LEASE, Duty
from mnemon.journal import Journal, Origin
from mnemon.memories.findable import words_of
from mnemon.model import Change, Space, SpaceStatus
from mnemon.ports import Indexes, Row, Store, Transaction, Unit, Vector, VectorRow
from mnemon.sql import among, chunks, load, params_of
from mnemon.texts import text_of
from mnemon.values import decode

if TYPE_CHECKING:  # slow to import
    from mnemon.embedding import Embedding

NAME = "embeddings"

_SQL = load("indexing")
_WRITES = {"add", "update", "restore"}
_SEALED = Layout("memory_entries", ("id", "namespace", "key", "version", "value"), ("value",))


class _Version(NamedTuple):
    id: int
    namespace: str
    key: str
    version: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A vector that was missing."""

    version: _Version
    space: Space
    embedding: Vector


class Embeddings:
    """Gives memories the words and vectors that they lack."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        indexes: Callable[[], Indexes],
        embedding: "Callable[[], Embedding] | None",
        space: Space | None = None,
        sealing: Sealing | None = None,
    ) -> None:
        """For one space that is being filled, or for all that are in use and for the words too."""
        self._sealing = sealing or Sealing()
        self._store = store
        self._clock = clock
        self._indexes = indexes
        self._embedding = embedding
        self._space = space
        self._writes = 0
        self.seen = 0
        """How many versions were looked at."""
        name = NAME if space is None else filler_of(space)
        self._consumer = Consumer(
            store, journal, clock, name, entities=("memory",), batch=BATCH, lease=LEASE, keep_lease=False
        )

    @property
    def duty(self) -> Duty:
        return Duty(self._consumer, self._step)

    async def _step(self) -> int:
        self._writes = 0
        handled = await self._consumer.prepare(self._prepare)
        self.seen += self._writes
        return handled

    async def _prepare(self, changes: Sequence[Change]) -> Unit[object]:
        """Words at once, vectors as soon as they are there; the last of them go with the position."""
        self._writes = sum(change.operation in _WRITES for change in changes)
        if not self._writes:
            return _nothing
        bounds = {"first": changes[0].position, "last": changes[-1].position}
        rows = await self._store.fetch(_SQL["versions_written"], bounds)
        versions = {row[0]: _Version(*row) for row in rows}
        if self._space is None:
            await self._complete_words([each for each in versions.values() if each.is_current])
        pieces = list(chunks(await self._missing_vectors(versions), AT_ONCE))
        for piece in pieces[:-1]:
            await self._store.write(self._putting_vectors(piece))
        return self._putting_vectors(pieces[-1]) if pieces else _nothing

    # -- words

    async def _complete_words(self, versions: Sequence[_Version]) -> None:
        """Index those that have no words. They can be found by these even if they cannot be embedded now."""
        known = await self._indexes().words.words_of([each.id for each in versions])
        wordless = [each for each in versions if each.id not in known]
        values, _ = await self._values(wordless)
        for piece in chunks(wordless, AT_ONCE):
            await self._store.write(self._putting_words(piece, values))

    def _putting_words(self, versions: Sequence[_Version], values: Mapping[int, str]) -> Unit[None]:
        words = {e.id: words_of({**e._asdict(), "value": values[e.id]}) for e in versions if e.id in values}

        async def unit(tx: Transaction) -> None:
            held = await self._hold(tx, list(words), sealed=False)
            for each in versions:
                if held.get(each.id):  # or another version has taken its place meanwhile
                    await self._indexes().words.put(tx, each.id, each.namespace, words[each.id])

        return unit

    # -- vectors

    async def _missing_vectors(self, versions: Mapping[int, _Version]) -> list[_Found]:
        """The vectors that versions lack, made now."""
        spaces = await self._spaces()
        lacking = await self._without_vectors(list(versions), spaces)
        values, sealed = await self._values([versions[each] for each in sorted(set[int]().union(*lacking.values()))])
        found: list[_Found] = []
        for known, cached in ((values, True), (sealed, False)):
            texts = {each: text for each, value in known.items() if (text := text_of(decode(value)))}
            for space in spaces:
                ids = [each for each in lacking[space.id] if each in texts]
                made = await self._embed(space, ids, texts, cached)
                found += [_Found(versions[each], space, vector) for each, vector in made]
        return found

    async def _spaces(self) -> list[Space]:
        """The spaces in which everything has to have a vector."""
        if self._space is not None:
            return [self._space]
        if self._embedding is None:
            return []
        embedding = self._embedding()
        spaces = await embedding.prepare()
        if not spaces:
            raise EmbedderUnavailable("the embedder cannot be asked now which model it is, so nothing is embedded yet")
        for space in spaces:
            if space.status is SpaceStatus.ACTIVE:  # to one that is being filled an index comes at the end
                await self._indexes().vectors.prepare(space)
        return [space for space in spaces if embedding.makes_vectors(space)]

    async def _without_vectors(self, ids: Sequence[int], spaces: Sequence[Space]) -> dict[int, list[int]]:
        """The versions that have no vector, by space."""
        present: set[Row] = set()
        for piece in chunks(ids) if spaces else ():
            wanted = [among("memory_id", piece, "memory"), among("space_id", [space.id for space in spaces], "space")]
            present.update(await self._store.fetch(_SQL["vectors_present"].where(wanted), params_of(wanted)))
        return {space.id: [each for each in ids if (each, space.id) not in present] for space in spaces}

    async def _embed(
        self, space: Space, ids: Sequence[int], texts: Mapping[int, str], cached: bool
    ) -> list[tuple[int, Vector]]:
        """Vectors by version; a text without a direction has none."""
        if not ids or self._embedding is None:
            return []
        vectors = await self._embedding().embed_in(space, [texts[each] for each in ids], cached=cached)
        return [(each, vector) for each, vector in zip(ids, vectors, strict=True) if vector.any()]

    def _putting_vectors(self, found: Sequence[_Found]) -> Unit[None]:
        async def unit(tx: Transaction) -> None:
            held = await self._hold(tx, [one.version.id for one in found], sealed=self._sealing.keeps_vectors)
            written = [one for one in found if one.version.id in held]
            rows = [VectorRow(one.version.id, one.space.id, one.version.namespace, one.embedding) for one in written]
            if rows:
                await self._indexes().vectors.put(tx, rows)
                now = Origin(self._clock.now())
                await journal.record(tx, [_entry(now, one) for one in written if held[one.version.id]])

        return unit

    # -- versions

    async def _values(self, versions: Sequence[_Version]) -> tuple[dict[int, str], dict[int, str]]:
        """What versions say, as JSON, and what the encrypted ones say, if it may be embedded.

        Those that do not say anything any more are left out.
        """
        values: dict[int, str] = {}
        sealed: dict[int, str] = {}
        for piece in chunks(versions):
            named = among("id", [each.id for each in piece], "id")
            rows = await self._store.fetch(_SQL["values_of"].where([named]), named.params)
            values |= {row[0]: row[1] for row in rows if not is_sealed(row[1])}
            if self._sealing.keeps_vectors:
                hidden = {row[0]: row[1] for row in rows if is_sealed(row[1])}
                texts = [(each.id, each.namespace, each.key, each.version, hidden[each.id])
                         for each in piece if each.id in hidden]  # fmt: skip
                sealed |= {row[0]: row[4] for row in await self._sealing.opened(self._store.fetch, _SEALED, texts)}
        return values, sealed

    async def _hold(self, tx: Transaction, ids: Sequence[int], *, sealed: bool) -> dict[int, bool]:
        """Which versions still say something, and whether they are current; neither changes until the end of `tx`.

        Those that were encrypted meanwhile are left out, unless the `sealed` ones are meant too.
        """
        named = among("id", ids, "id")
        query = _SQL["hold_versions"].where([named], self._store.dialect.row_lock)
        rows = await tx.fetch_all(query, named.params)
        return {each: bool(is_current) for each, is_current, head in rows if sealed or not is_sealed(head)}


def filler_of(space: Space) -> str:
    """The name of the consumer that fills a space."""
    return f"space:{space.id}"


def _entry(origin: Origin, found: _Found) -> dict[str, Any]:
    one = found.version
    told = {"space": found.space.id}
    return journal.entry(origin, "memory", one.key, "embed", namespace=one.namespace, version=one.version, payload=told)


async def _nothing(tx: Transaction) -> None:
    return
