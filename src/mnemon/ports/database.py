"""The database: transactions, the differences of dialects, waiting for changes."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from mnemon.filters import Comparison
from mnemon.sql import Fragment, Query

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

    async def scrub(self, tables: Sequence[str] = ()) -> bool:
        """Make what was deleted unrecoverable from the store's own files; whether that was possible now.

        Of `tables` also whatever their rows said before they were changed, which may take long.
        """
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
    def size(self) -> Query:
        """Asks how many bytes the database takes."""
        ...

    def octets(self, column: str) -> str:
        """The expression for how many bytes a column's text is."""
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
