"""A service's database: plain connections for the hot path, a SQLAlchemy engine for the rest."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from parley.clock import Clock, SystemClock
from parley.postgres.array_types import introduce_arrays
from parley.postgres.errors import PoolExhausted
from parley.postgres.pool import Connection, Pool
from parley.postgres.session import Session, SessionLimits, outage_of, typed_outages
from parley.telemetry import Statements

STARTUP_PATIENCE_S = 30.0
#: Shorter than the server's lock_timeout: when a whole pool waits for locks, other callers must not
#: wait just as long.
POOL_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Database:
    """Open connections to one database under one role.

    Losing every connection at once is normal (one crashed backend disconnects all): the call in
    progress fails with `DatabaseUnavailable`, the next call connects again.

    Attributes:
        pool: For the hot path.
        engine: For the rest.
        side_pool: A pool separate from `pool`, if connections were reserved for it; else the same.
        pool_patience_s: How long a caller waits for a connection.
    """

    pool: Pool
    engine: AsyncEngine
    side_pool: Pool
    pool_patience_s: float = POOL_PATIENCE_S

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        application_name: str,
        connections_max: int,
        limits: SessionLimits | None = None,
        clock: Clock | None = None,
        patience_s: float = STARTUP_PATIENCE_S,
        statements: Statements | None = None,
        pool_patience_s: float = POOL_PATIENCE_S,
        side_connections: int = 0,
    ) -> "AsyncIterator[Database]":
        """Wait for the server, then yield the database; at most `connections_max` are ever open.

        Statements are measured and traced by `statements`, if it is given. A caller that finds all
        connections in use waits `pool_patience_s` for one and then gets `PoolExhausted`.
        `side_connections` of them form a pool of their own.

        Raises:
            DatabaseUnavailable: The server did not answer within `patience_s`.
            DatabaseMisconfigured: The URL, role, password or database is wrong.
            ServerTooOld: The server's version is not supported.
        """
        if connections_max < 2 + side_connections:
            raise ValueError("connections_max is at least 2: one for the pool, one for the engine")
        session = Session(url, application_name, limits or SessionLimits())
        first = await session.open_patiently(clock=clock or SystemClock(), patience_s=patience_s)
        await first.close()
        engine_share = max(1, connections_max // 4)
        async with AsyncExitStack() as stack:
            engine = _engine(session, engine_share, pool_patience_s)
            if statements is not None:
                observe_engine(engine.sync_engine, statements)
            stack.push_async_callback(engine.dispose)
            pool_share = connections_max - engine_share - side_connections
            pool = side_pool = await stack.enter_async_context(
                _pool(session, pool_share, statements, pool_patience_s)
            )
            if side_connections:
                side_pool = await stack.enter_async_context(
                    _pool(session, side_connections, statements, pool_patience_s)
                )
            yield cls(pool, engine, side_pool, pool_patience_s)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection inside a transaction; commit at the end, roll back on an error.

        Raises:
            DatabaseUnavailable: The connection was lost; if that was while committing, the
                transaction may or may not have been committed.
        """
        async with self._connected() as connection, connection.begin():
            yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection without a transaction: no BEGIN and no COMMIT is sent.

        Raises:
            DatabaseUnavailable: The connection was lost.
        """
        async with self._connected() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with AsyncExitStack() as stack:
                with typed_outages():
                    connection = await stack.enter_async_context(self.engine.connect())
                yield connection
        except PoolTimeout as error:
            raise PoolExhausted(self.pool_patience_s) from error
        except (DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            outage = outage_of(error)
            if outage is None:
                raise
            raise outage from error


def _pool(
    session: Session, connections_max: int, statements: Statements | None, patience_s: float
) -> Pool:
    kind = asyncpg.Connection if statements is None else observed_connection(statements)

    async def connect() -> Connection:
        connection = await asyncpg.connect(**session.arguments(), connection_class=kind)
        introduce_arrays(connection)
        return connection

    return Pool(connect, size_max=connections_max, patience_s=patience_s)


def _engine(session: Session, connections_max: int, patience_s: float) -> AsyncEngine:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=session.open_untyped,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=patience_s,
        pool_use_lifo=True,
    )

    @event.listens_for(engine.sync_engine, "checkout")
    def refuse_closed(connection: object, record: object, proxy: object) -> None:
        """Make the pool reconnect when a connection was lost while it was idle."""
        driver: asyncpg.Connection[asyncpg.Record] = connection.driver_connection  # type: ignore[attr-defined]
        if driver.is_closed():
            raise DisconnectionError

    return engine


def observed_connection(statements: Statements) -> type["asyncpg.Connection[asyncpg.Record]"]:
    """Return a connection class that reports every statement to `statements`.

    asyncpg's pool accepts a connection class, but no other argument for its connections.
    """

    class Observed(asyncpg.Connection):
        async def execute(self, query: str, *args: Any, **options: Any) -> str:
            with statements.observed(query) as text:
                return await super().execute(text, *args, **options)

        async def executemany(self, command: str, args: Iterable[Any], **options: Any) -> None:
            with statements.observed(command) as text:
                await super().executemany(text, args, **options)

        async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
            with statements.observed(query) as text:
                return await super().fetch(text, *args, **options)

        async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
            with statements.observed(query) as text:
                return await super().fetchrow(text, *args, **options)

        async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
            with statements.observed(query) as text:
                return await super().fetchval(text, *args, **options)

    return Observed


def observe_engine(engine: Engine, statements: Statements) -> None:
    """Report every statement of an engine to `statements`."""

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def begin(
        connection: Any, cursor: Any, text: str, values: Any, context: Any, is_many: bool
    ) -> tuple[str, Any]:
        context.observed = ExitStack()
        return context.observed.enter_context(statements.observed(text)), values

    @event.listens_for(engine, "after_cursor_execute")
    def end(*arguments: Any) -> None:
        arguments[4].observed.close()

    @event.listens_for(engine, "handle_error")
    def fail(failed: Any) -> None:
        context = failed.execution_context
        if hasattr(context, "observed"):
            context.observed.close()
