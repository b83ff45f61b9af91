"""One connection to PostgreSQL: how it is opened and limited, and which errors mean it is lost."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import asyncpg
from sqlalchemy.exc import DBAPIError

from parley.clock import Clock, backoff_s
from parley.postgres.errors import (
    DatabaseBusy,
    DatabaseMisconfigured,
    DatabaseUnavailable,
    Deadlocked,
    SerializationFailed,
    ServerTooOld,
    StatementEnded,
)

SERVER_MAJOR_MIN = 15
CONNECT_TIMEOUT_S = 10.0
RETRY_FIRST_S = 0.1
RETRY_MAX_S = 2.0

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,  # The server died while asyncpg was between two messages.
    OSError,  # Refused, reset, missing socket, and TimeoutError.
)
_ENDED: dict[type[BaseException], type[StatementEnded]] = {
    asyncpg.DeadlockDetectedError: Deadlocked,
    asyncpg.SerializationError: SerializationFailed,
    asyncpg.LockNotAvailableError: DatabaseBusy,
    asyncpg.QueryCanceledError: DatabaseBusy,  # It took longer than `statement_timeout_s`.
    asyncpg.InsufficientResourcesError: StatementEnded,  # Disk or memory is full.
}
_REMEDIES: dict[type[BaseException], str] = {
    asyncpg.InvalidPasswordError: "check the password in the database URL",
    asyncpg.InvalidAuthorizationSpecificationError: "check the role and its password in the URL",
    asyncpg.InvalidCatalogNameError: "create that database or correct its name in the URL",
    asyncpg.InsufficientPrivilegeError: "grant the role CONNECT on that database",
    asyncpg.ClientConfigurationError: "write it as postgresql://role:password@host:port/database",
    ValueError: "write it as postgresql://role:password@host:port/database",
}


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits that the server enforces on each connection: cancelling in the client is unsafe.

    A cancelled call may have committed; a statement that the server ended has not.
    """

    statement_timeout_s: float = 30.0
    lock_timeout_s: float = 10.0
    idle_in_transaction_timeout_s: float = 5.0

    def settings(self) -> dict[str, str]:
        """Return the limits as PostgreSQL settings."""
        idle_s = self.idle_in_transaction_timeout_s
        return {
            "statement_timeout": f"{self.statement_timeout_s * 1000:.0f}",
            "lock_timeout": f"{self.lock_timeout_s * 1000:.0f}",
            # A stopped process that holds a row lock must not hold it forever.
            "idle_in_transaction_session_timeout": f"{idle_s * 1000:.0f}",
        }


@dataclass(frozen=True, slots=True)
class Session:
    """The parameters of a connection; each call of `open` opens a new one."""

    url: str = field(repr=False)
    application_name: str
    limits: SessionLimits = field(default_factory=SessionLimits)
    search_path: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `asyncpg.connect` and `asyncpg.create_pool`."""
        settings = {
            "application_name": self.application_name,
            # Custom plans halve the rate of the hot statements.
            "plan_cache_mode": "force_generic_plan",
            # asyncpg's own catalogue queries are slow when compiled.
            "jit": "off",
            **self.limits.settings(),
        }
        if self.search_path is not None:
            settings["search_path"] = self.search_path
        timeout_s = self.limits.statement_timeout_s
        return {
            "dsn": self.url,
            "timeout": CONNECT_TIMEOUT_S,
            # Longer than the server's own timeout: it is reached only when the server does not
            # respond.
            "command_timeout": timeout_s + 15 if timeout_s else None,
            "server_settings": settings,
        }

    async def open(self) -> "asyncpg.Connection[asyncpg.Record]":
        """Open the connection.

        Raises:
            DatabaseUnavailable: The server does not answer.
            DatabaseMisconfigured: The URL, role, password or database is wrong.
            ServerTooOld: The server's version is not supported.
        """
        try:
            with typed_outages():
                connection = await self.open_untyped()
        except tuple(_REMEDIES) as error:
            remedy = next(text for kind, text in _REMEDIES.items() if isinstance(error, kind))
            raise DatabaseMisconfigured(first_line(error), remedy) from error
        version = connection.get_server_version()
        try:
            require_supported(version.major, version.minor)
        except ServerTooOld:
            connection.terminate()
            raise
        return connection

    async def open_untyped(self) -> "asyncpg.Connection[asyncpg.Record]":
        """Open the connection and raise asyncpg's own errors, as SQLAlchemy expects them."""
        return await asyncpg.connect(**self.arguments())

    async def open_patiently(
        self, *, clock: Clock, patience_s: float
    ) -> "asyncpg.Connection[asyncpg.Record]":
        """Open the connection, trying again for `patience_s` while the server is unavailable.

        Raises:
            DatabaseUnavailable: The server did not come up in time.
            DatabaseMisconfigured: Raised at once, because a retry does not help.
        """
        give_up_at = clock.monotonic() + patience_s
        failures = 0
        while True:
            failures += 1
            delay_s = backoff_s(failures, RETRY_FIRST_S, RETRY_MAX_S)
            try:
                return await self.open()
            except DatabaseUnavailable:
                if clock.monotonic() + delay_s > give_up_at:
                    raise
            await clock.sleep(delay_s)


def require_supported(major: int, minor: int) -> None:
    """Refuse a server that lacks features of Parley's statements.

    Raises:
        ServerTooOld: It is older than `SERVER_MAJOR_MIN`.
    """
    if major < SERVER_MAJOR_MIN:
        raise ServerTooOld(f"{major}.{minor}", SERVER_MAJOR_MIN)


def is_unavailable(error: BaseException) -> bool:
    """Return whether `error` (asyncpg's or SQLAlchemy's) means that the connection is lost."""
    if isinstance(error, DBAPIError):
        cause = error.orig.__cause__ if error.orig is not None else None
        return error.connection_invalidated or (cause is not None and is_unavailable(cause))
    if isinstance(error, asyncpg.InterfaceError):
        return "connection is closed" in str(error)  # asyncpg has no class for this one.
    return isinstance(error, (DatabaseUnavailable, *_LOST))


def outage_of(error: BaseException) -> DatabaseUnavailable | None:
    """Return `error` as an error that a caller may retry, None if a retry would not help."""
    if isinstance(error, DatabaseUnavailable):
        return error
    if is_unavailable(error):
        return DatabaseUnavailable(first_line(error))
    origin: BaseException | None = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        origin = error.orig.__cause__
    ended = next((ended for kind, ended in _ENDED.items() if isinstance(origin, kind)), None)
    return None if ended is None else ended(first_line(error))


def raise_outage(error: BaseException | None) -> None:
    """Raise `error` as `outage_of` types it; return if it is no outage or has its type already."""
    if isinstance(error, Exception):
        outage = outage_of(error)
        if outage is not None and outage is not error:
            raise outage from error


class _TypedOutages:
    """A class and not a generator, since it is made for every statement."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise_outage(error)


_TYPED_OUTAGES = _TypedOutages()


def typed_outages() -> AbstractContextManager[None]:
    """Raise `DatabaseUnavailable` for transient errors of a connection that is not of a `Pool`."""
    return _TYPED_OUTAGES


def first_line(error: BaseException) -> str:
    """Return the first line of the driver's own error; SQLAlchemy's would repeat the statement."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig.__cause__ or error.orig
    return str(error).partition("\n")[0] or type(error).__name__


def quoted(name: str) -> str:
    """Return `name` quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
