"""The interfaces between Mnemon and the technology that it runs on."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from mnemon.facts import FactFilter
from mnemon.filters import Comparison, Filter
from mnemon.model import EmbeddingModel, Match, Space, StoredContent, StoreDescription
from mnemon.sql import Fragment, Query

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]
else:
    Vector = Any  # numpy is slow to import, and needed only once something is embedded
"""One vector, or a matrix with a row for each: 32-bit floats, of length 1 where it is stored or compared."""

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Mapping[str, Any]


class Transaction(Protocol):
    """One open transaction. Its methods are all that a unit of work may await."""

    async def fetch_one(self, query: Query, params: Params) -> Row | None:
        """The first row of the answer, or None."""
        ...

    async def fetch_all(self, query: Query, params: Params) -> list[Row]:
        """Every row of the answer, in the query's order."""
        ...

    async def fetch_each(self, query: Query, rows: Sequence[Params]) -> list[Row]:
        """Run the statement once for each of `rows`; the one row that each returned, in order."""
        ...

    async def execute(self, query: Query, params: Params) -> int:
        """Run the statement; how many rows it changed."""
        ...

    async def execute_many(self, query: Query, rows: Sequence[Params]) -> None:
        """Run the statement once for each of `rows`."""
        ...


Unit: TypeAlias = Callable[[Transaction], Coroutine[Any, Any, T]]
"""A unit of work. It may be run more than once, so it has no effect but through its transaction."""


class Raced(Exception):
    """Raised by a unit of work to be run again: what it had read changed before it could write."""


class Database(Protocol):
    """The truth: one transactional database.

    Every method raises `StoreClosed` after `close`, and a `StoreError` when the store fails.
    """

    async def write(self, unit: Unit[T]) -> T:
        """Run `unit` in a transaction and commit it; if it raises, nothing of it remains.

        Serialisation conflicts and `Raced` are retried with back-off, so `unit` may run several times.
        When the call returns, every later read sees the write and other processes' followers
        have been told.
        """
        ...

    async def read(self, unit: Unit[T], *, long: bool = False) -> T:
        """Run `unit` on one consistent snapshot. `long`: it may read without bound."""
        ...

    async def fetch(self, query: Query, params: Params) -> list[Row]:
        """Answer one bounded query, the quickest way."""
        ...

    async def scrub(self) -> bool:
        """Make what was deleted unrecoverable from the store's own files; whether that was possible now."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of every resource; idempotent."""
        ...

    @property
    def dialect(self) -> "Dialect":
        """What differs between databases."""
        ...


class Dialect(Protocol):
    """What the services need to know of a database's own language."""

    @property
    def horizon(self) -> Query:
        """Asks how far the journal is safe to tail.

        Nothing at or below the answer can still appear to a query that is begun after it.
        """
        ...

    @property
    def row_lock(self) -> str:
        """What ends a query so that the rows it reads are the transaction's alone until its end."""
        ...

    def listed(self, column: str, name: str, values: Sequence[int]) -> Fragment:
        """The condition that a column has one of any number of whole numbers, which are the parameter `name`."""
        ...

    def compare(self, comparison: Comparison, column: str, name: str) -> Fragment:
        """A condition on a JSON column, never NULL; its parameters' names begin with `name`.

        `filters` says what each operator means; every database must agree with it.
        """
        ...


class Follower(Protocol):
    """Wakes those who wait for the journal to grow, in this process and in others."""

    def ticket(self) -> int:
        """Take it before reading; `wait` returns at once if a commit has come since."""
        ...

    def wait(self, ticket: int, timeout: float) -> Awaitable[None]:
        """Return at the first commit after `ticket`, or after `timeout` seconds."""
        ...

    def wake(self) -> None:
        """Let everybody in this process who waits look again now, from whichever thread."""
        ...


class Store(Database, Follower, Protocol):
    """A database whose commits can be waited for."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which live memories a question is about; a principal's grants have gone into `prefixes` already."""

    prefixes: tuple[str, ...]
    """Namespaces at or below any of these; they lie side by side, none inside another."""
    types: tuple[str, ...] = ()
    """Any of these memory types; all types if empty."""
    min_trust: float = 0.0
    where: Filter | None = None
    """What the metadata must say."""


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """How common words are among all memories; what BM25 is reckoned from."""

    documents: int
    average_length: float
    frequencies: Mapping[str, int]
    """In how many memories each of the words asked for is."""


class WordIndex(Protocol):
    """Finds live memories by their words, which come analysed: see `words`."""

    async def put(self, tx: Transaction, memory_id: int, namespace: str, words: Sequence[str]) -> None:
        """Index a version of a memory in the transaction that makes it the current one."""
        ...

    async def drop(self, tx: Transaction, memory_ids: Sequence[int], *, erase: bool = False) -> None:
        """The versions are no longer current. `erase`: nothing of their words may stay in the files."""
        ...

    async def search(self, words: Sequence[str], scope: Scope, limit: int) -> list[Match]:
        """The memories in scope that match best, best first; the score is BM25's or like it."""
        ...

    async def find(self, words: Sequence[str], scope: Scope, limit: int) -> tuple[list[Match], WordStatistics]:
        """Like `search`, and how common the words are, for those who look at what was found anyway.

        They have to leave out what is not in scope: now and then something of another namespace is among it.
        """
        ...

    async def words_of(self, memory_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words that the memories were indexed with; those of no current memory are left out."""
        ...

    async def statistics(self, words: Sequence[str]) -> WordStatistics:
        """How common the words are."""
        ...


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The vector of one version of a memory in one space."""

    memory_id: int
    space_id: int
    namespace: str
    embedding: Vector


class VectorMirror(Protocol):
    """The vectors of all memories, as rows of the database itself, and the search over them.

    Only current, live memories are found; vectors of earlier versions stay, for as-of reads.
    """

    async def prepare(self, space: Space) -> None:
        """Make the space ready to be searched fast, as by an index of its own; idempotent."""
        ...

    async def put(self, tx: Transaction, rows: Sequence[VectorRow]) -> None:
        """Write vectors in the transaction that makes or embeds their memories; again is the same."""
        ...

    async def search(self, space: Space, vector: Vector, scope: Scope, limit: int) -> list[Match]:
        """The memories in scope whose vectors are nearest, nearest first; the score is the cosine."""
        ...

    async def similarity(self, space: Space, vector: Vector, memory_ids: Sequence[int]) -> dict[int, float]:
        """The exact cosine of each of the versions that has a vector in the space, current or not."""
        ...

    async def vectors_of(self, space: Space, memory_ids: Sequence[int]) -> dict[int, Vector]:
        """The vectors of these versions, as far as they have one in the space."""
        ...

    async def erase(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        """Nothing of the vectors of these versions may stay in the files, in any space."""
        ...


@dataclass(frozen=True, slots=True)
class Indexes:
    """What finds memories in the database itself."""

    words: WordIndex
    vectors: VectorMirror


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """The vector of a live memory as a vector store outside the database keeps it."""

    id: str
    """A UUID made of the memory's namespace and key: a new version takes the place of the old one."""
    memory_id: int
    """The version that the vector is of."""
    embedding: Vector
    facts: tuple[str, ...]
    """What filters are answered from: see `facts`."""
    trust: float
    words: tuple[str, ...]
    """The analysed text, for stores that search text too."""
    about: Mapping[str, str | int]
    """Namespace, key, version, and the embedding model's name, version and dimension."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """What a vector store outside the database is asked for."""

    embedding: Vector
    limit: int
    where: FactFilter
    """Met exactly: `facts.accepts` says what it means, `facts.normal` gives it a form that any store can take."""
    min_trust: float = 0.0
    words: tuple[str, ...] = ()
    """If any, a store that searches text too mixes both scores in its own way."""


class VectorMemory(Protocol):
    """A vector store outside the database, opened for one space. It follows the journal.

    Its methods are plain functions that may block: Mnemon calls them from a thread, several at once.
    They raise `StoreUnavailable` when the store cannot be reached or does not answer in time,
    `StoreClosed` after `close`, and another `StoreError` when the store fails. Opening reaches nothing
    yet: the first call connects and sets up what the space needs, and if it fails the next one tries
    again. Nothing is repeated behind the caller's back, as a late write could undo a later one.
    """

    def store(self, records: Sequence[VectorRecord]) -> None:
        """Keep the records; one with the same id is replaced, and within a batch the last one stays.

        They can be found when this returns. If it raises, any of them may have been kept.
        """
        ...

    def query(self, query: VectorQuery) -> list[Match]:
        """The nearest that meet the filter, nearest first, as ids of memories with cosines.

        If the store mixes in words, the scores are its own: they order its answer and compare with nothing else.
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Forget the records; those that are not there do not matter."""
        ...

    def listing(self, after: str | None, limit: int) -> list[tuple[str, int]]:
        """The next records' ids and memory ids after an id, in the store's own order; for verifying.

        The order stays while records come and go, so that what is there all the time is listed exactly
        once; the id itself need not be there any more.
        """
        ...

    def describe(self) -> StoreDescription:
        """What the store is and how much it holds."""
        ...

    def drop(self) -> None:
        """Remove all that is kept for the space, and the place where it is kept; nothing there does not matter.

        Whoever uses the store after that begins with an empty one.
        """
        ...

    def close(self) -> None:
        """Let go of every connection; idempotent."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors. Its methods may block: Mnemon runs what may take long on a thread."""

    @property
    def model(self) -> EmbeddingModel:
        """Which model it is; vectors can be compared only with those of the same model and version.

        The dimension of a remote model is 0 until its first answer, if it was not declared.
        """
        ...

    @property
    def is_quick(self) -> bool:
        """Whether a short text takes well under a millisecond, so that a thread or a cache is not worth it."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """A matrix with a row for each text, of any length. `StoreUnavailable` if it cannot be done now."""
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model wrote, and how many tokens the question and the answer are."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class LanguageModel(Protocol):
    """Answers questions in JSON. Its methods may block: Mnemon runs them on a thread, several at once.

    Whoever asks checks the answer (see `language.CheckedModel`), so that a model need only try.
    """

    @property
    def name(self) -> str:
        """Which model it is, as what was made with it says."""
        ...

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """The model's next message: one JSON object of the JSON schema, if the model can be made to write that.

        At most `max_tokens` long, and cut off there. `StoreUnavailable` if it cannot be had now.
        """
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...


class EmbeddingCache(Protocol):
    """Keeps what was embedded, by the digest of its content, for one space."""

    async def get(self, space: Space, digests: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are known."""
        ...

    async def put(self, space: Space, vectors: Mapping[str, Vector]) -> None:
        """Remember vectors by digest."""
        ...

    async def drop(self, space: Space, digests: Sequence[str]) -> None:
        """Forget vectors for good; those that are not there do not matter. Raises if that cannot be done now."""
        ...


class Reranker(Protocol):
    """Judges texts by a question, one by one: slow, and better than any index. May block."""

    def judge(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the question; only the order and distances matter."""
        ...


class Expander(Protocol):
    """Says the same question in other words, as a language model would. May block."""

    def expand(self, question: str) -> Sequence[str]:
        """Other wordings; none if nothing comes to mind."""
        ...


class ContentWriter(Protocol):
    """Takes in one content, piece by piece; only one thread at a time uses it."""

    def write(self, piece: bytes) -> None:
        """Take the next piece; it may be of any length."""
        ...

    def finish(self, sha256: str) -> None:
        """Keep what was written under its digest, which the caller has reckoned.

        When this returns, the content survives a power cut. Content that is there already is written again
        only if it is damaged, but counts as written now.
        """
        ...

    def abort(self) -> None:
        """Leave nothing behind. Idempotent, and nothing happens after `finish`."""
        ...


class ContentStore(Protocol):
    """Contents by their SHA-256 digest, outside the database; `contents` is how services use it.

    Its methods are plain functions that may block: Mnemon calls them from threads, several at once. They raise
    `StoreUnavailable` when the store cannot be reached, and another `StoreError` when it fails. Opening reaches
    nothing yet.
    """

    def new(self) -> ContentWriter:
        """A writer for a content of any size, which takes no more memory for a larger one."""
        ...

    def read(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes from `offset` on, in pieces; `ContentMissing` with the first of them if there are none.

        The caller verifies them, and closes the iterator if it does not read to the end.
        """
        ...

    def delete(self, sha256: str, age: float) -> bool:
        """Remove the content, if it was last written at least `age` seconds ago; whether it was removed.

        A writer that finishes the same content at the same time wins: after its `finish` the content is there.
        """
        ...

    def listing(self) -> Iterator[StoredContent]:
        """Every content, in the order of the digests; what comes or goes meanwhile may be listed or not."""
        ...

    def sweep(self, age: float) -> int:
        """Remove what writers left that died, if it was not written to for `age` seconds; how many bytes."""
        ...

    def close(self) -> None:
        """Let go of every resource; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What people are to see of one session: a folder with files by names that say what they are, and a manifest.

    `revision` grows with every change of the session's artifacts; `files` has the digest of each file by its name.
    `place` and the names are safe in any file system.
    """

    place: str
    revision: int
    files: Mapping[str, str]
    manifest: bytes


class Showcase(Protocol):
    """Shows people what there is, beside the contents; a projection that can be made anew at any time.

    Plain functions that may block, like those of `ContentStore`.
    """

    def show(self, exhibit: Exhibit) -> bool:
        """Show this and nothing else in its place; False if what is shown is of a later revision.

        A file that is shown under the same name is left as it is. The manifest changes in one step, at the end.
        """
        ...

    def places(self) -> Iterator[str]:
        """Every place where something is shown."""
        ...

    def remove(self, place: str, revision: int | None = None) -> bool:
        """Show nothing there any more; idempotent. False if what is shown is of a later revision than this."""
        ...


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where contents are kept, and where people see them if they can."""

    store: ContentStore
    showcase: Showcase | None = None


class Runner(Protocol):
    """How work that may block, and several things at once, are done: with an event loop or without."""

    async def aside(self, work: Callable[[], T]) -> T:
        """Do work that may block, so that an event loop does not wait for it."""
        ...

    async def together(self, *work: Awaitable[T]) -> list[T]:
        """Do all of it, at once if there is an event loop; the results in order."""
        ...


def _no_indexes(store: Store, runner: Runner) -> Indexes:
    raise NotImplementedError("this backend finds memories neither by words nor by vectors")


@dataclass(frozen=True, slots=True)
class Backend:
    """A database as one program uses it, and what its upkeep needs."""

    store: Store
    upkeep: Store
    """A face of the same database whose coroutines never suspend, for the housekeeper's thread."""
    chores: tuple[Callable[[], object], ...] = ()
    """What the housekeeper does when the backend asks for it."""
    attach: Callable[[Callable[[], None]], None] = lambda poke: None
    """Tells the backend how to ask for its chores."""
    index: Callable[[Store, Runner], Indexes] = _no_indexes
    """The indexes, as one of the two stores reaches them; what they hold in memory is shared."""
    read_only: bool = False
