"""A connection pool: a connection is acquired for one statement or one transaction.

asyncpg's own pool makes a proxy, a timer, a shielded task and a reset out of every statement, which
costs twice what the statement does. Here acquiring is a `pop` and releasing an `append`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import asyncpg

from parley.postgres.errors import PoolExhausted
from parley.postgres.session import raise_outage, typed_outages

#: The time the server gets to end a statement whose caller was cancelled.
SETTLING_S_MAX: Final = 10.0
#: A connection that was not needed for this time is closed.
SPARE_S: Final = 300.0

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class Pool:
    """At most `size_max` connections, opened on demand; the last used is acquired first.

    They are not reset in between: a caller that changes a session setting or takes a session lock
    must undo it. A connection that is released inside a transaction is closed, so that the server
    rolls back. Both the server's and the driver's state are checked: a cancelled BEGIN may leave
    them different, and the next transaction on it would be treated as a nested one.

    Args:
        connect: Opens a connection.
        size_max: The maximum number of connections.
        patience_s: How long a caller waits when all of them are in use.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], *, size_max: int, patience_s: float
    ) -> None:
        self.size_max = size_max
        self._connect = connect
        self._patience_s = patience_s
        self._free = asyncio.Semaphore(size_max)
        self._idle: list[Connection] = []
        self._unneeded = 0  # The lowest number of idle connections since the last check.
        self._next_look: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Open the first connection, so that configuration errors are raised now."""
        with typed_outages():
            self._idle.append(await self._connect())
        self._look_later()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close idle connections; one in use is closed when it is released."""
        self._is_closed = True
        if self._next_look is not None:
            self._next_look.cancel()
        while self._idle:
            await self._idle.pop().close(timeout=SETTLING_S_MAX)

    def acquire(self) -> "_AcquiredConnection":
        """Acquire a connection for as long as the context is open.

        Raises:
            PoolExhausted: None became free in time.
            StatementEnded: When it closes: the server ended a statement, which changed nothing.
            DatabaseUnavailable: The connection was lost; a write may have been committed.
        """
        return _AcquiredConnection(self._take, self._keep)

    async def execute(self, query: str, *values: Any) -> str:
        """Run a statement, see `asyncpg.Connection.execute`; with `acquire`'s errors."""
        async with self.acquire() as connection:
            return await connection.execute(query, *values)

    async def executemany(self, query: str, rows: Iterable[Any]) -> None:
        """Run a statement for each row, see `asyncpg.Connection.executemany`."""
        async with self.acquire() as connection:
            await connection.executemany(query, rows)

    async def fetch(self, query: str, *values: Any) -> list[asyncpg.Record]:
        """Return all rows, see `asyncpg.Connection.fetch`; with `acquire`'s errors."""
        async with self.acquire() as connection:
            rows: list[asyncpg.Record] = await connection.fetch(query, *values)
            return rows

    async def fetchrow(self, query: str, *values: Any) -> asyncpg.Record | None:
        """Return the first row, see `asyncpg.Connection.fetchrow`; with `acquire`'s errors."""
        async with self.acquire() as connection:
            row: asyncpg.Record | None = await connection.fetchrow(query, *values)
            return row

    async def fetchval(self, query: str, *values: Any) -> Any:
        """Return the first value of the first row; with `acquire`'s errors."""
        row = await self.fetchrow(query, *values)
        return None if row is None else row[0]

    async def _take(self) -> Connection:
        if self._is_closed:
            raise asyncpg.InterfaceError("the pool is closed")
        if not self._free.locked():
            await self._free.acquire()
        else:
            await self._wait_patiently()
        while self._idle:
            connection = self._idle.pop()
            self._unneeded = min(self._unneeded, len(self._idle))
            if not connection.is_closed():
                return connection
        try:
            with typed_outages():
                return await self._connect()
        except BaseException:
            self._free.release()
            raise

    async def _wait_patiently(self) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError as error:
            raise PoolExhausted(self._patience_s) from error

    def _keep(self, connection: Connection) -> None:
        if self._is_closed or not _is_clean(connection):
            connection.terminate()
        else:
            self._idle.append(connection)
        self._free.release()

    def _look_later(self) -> None:
        self._unneeded = len(self._idle)
        self._next_look = asyncio.get_running_loop().call_later(SPARE_S, self._close_unneeded)

    def _close_unneeded(self) -> None:
        for connection in self._idle[: self._unneeded]:
            connection.terminate()
        del self._idle[: self._unneeded]
        self._look_later()


class _AcquiredConnection(AbstractAsyncContextManager[Connection]):
    """An acquired connection; a class, not a generator, since it is made for every statement."""

    __slots__ = ("_connection", "_keep", "_take")

    def __init__(
        self, take: Callable[[], Awaitable[Connection]], keep: Callable[[Connection], None]
    ) -> None:
        self._take = take
        self._keep = keep

    async def __aenter__(self) -> Connection:
        self._connection = await self._take()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the connection, raise an outage as one; a cancelled statement is ended first.

        asyncpg sends a cancel request, and lets the next statement wait until it is handled.
        """
        connection = self._connection
        is_given_up = isinstance(error, TimeoutError) or not isinstance(error, Exception | None)
        try:
            if is_given_up and not connection.is_closed():
                await _settle(connection)
        finally:
            self._keep(connection)
        raise_outage(error)


def _is_clean(connection: Connection) -> bool:
    """Return whether a connection is open, in no transaction, and has no statement in progress.

    asyncpg reports the transaction state of the server, but not its own; and it is by its own state
    that it begins a transaction or a savepoint.
    """
    if connection.is_closed() or connection.is_in_transaction():
        return False
    believed: object = connection._top_xact  # type: ignore[attr-defined]
    is_cancelling: bool = connection._protocol._is_cancelling()  # type: ignore[attr-defined]
    return believed is None and not is_cancelling


async def _settle(connection: Connection) -> None:
    """Wait until the server has ended the statement in progress."""
    try:
        async with asyncio.timeout(SETTLING_S_MAX):
            await connection.execute("ROLLBACK")
    except BaseException as error:
        connection.terminate()
        if not isinstance(error, Exception):
            raise
