"""The activity of PostgreSQL during a run, from its log, its transaction ids and its sessions.

Statements are counted in the log of a server that belongs to this user. It logs a sample of them,
so that a long run does not fill the disk: about `SAMPLED_MAX`.
"""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from os import SEEK_END
from pathlib import Path

import asyncpg

from parley.clock import Clock
from parley.testing.scaletest.costs import DatabaseActivity
from parley.testing.scaletest.statement_logging import MARK, Logging, logged

SAMPLED_MAX = 5_000
LOOK_S = 1.0
READ_BYTES = 1 << 20
EXECUTED = re.compile(
    rb"^" + MARK.encode() + rb"(\S+) [^\n]* LOG:  duration: [\d.]+ ms  (?:execute |statement: )",
    re.MULTILINE,
)
NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
SESSIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database()
        AND usename <> current_user
"""


class DatabaseWatch:
    """Counts the activity from its start to its end."""

    def __init__(
        self, connection: "asyncpg.Connection[asyncpg.Record]", log: Path | None, rate: float
    ) -> None:
        self._connection = connection
        self._log = log
        self._rate = rate
        self._offset = log.stat().st_size if log is not None else 0
        self._rest = b""
        self._logged = 0
        self._first_transaction = 0
        self._peak = 0

    @classmethod
    @asynccontextmanager
    async def started(
        cls, url: str, log: Path | None, *, statements: int
    ) -> "AsyncIterator[DatabaseWatch]":
        """Count until the context ends.

        Args:
            url: The database, as a superuser if statements are to be counted.
            log: The server's log file; None if statements cannot be counted.
            statements: The expected number of statements.

        Raises:
            OSError: The database cannot be reached.
            asyncpg.PostgresError: The database refuses.
            LoggingRefused: The server does not log statements.
        """
        rate = min(1.0, SAMPLED_MAX / max(1, statements))
        async with AsyncExitStack() as around:
            connection = await asyncpg.connect(url)
            around.push_async_callback(connection.close)
            if log is not None:
                await around.enter_async_context(logged(Logging(url, rate)))
            watch = cls(connection, log, rate)
            watch._first_transaction = await connection.fetchval(NEXT_TRANSACTION)
            yield watch

    async def look(self, clock: Clock) -> None:
        """Sample the sessions and the log every second, until this is cancelled."""
        while True:
            await self._look()
            await clock.sleep(LOOK_S)

    async def activity(self) -> DatabaseActivity:
        """Return the activity since the start; call it when `look` has ended."""
        await self._look()
        commits = await self._connection.fetchval(NEXT_TRANSACTION) - self._first_transaction
        allowed = int(await self._connection.fetchval("SHOW max_connections"))
        statements = None if self._log is None else round(self._logged / self._rate)
        return DatabaseActivity(statements, commits, self._peak, allowed)

    async def _look(self) -> None:
        self._peak = max(self._peak, await self._connection.fetchval(SESSIONS))
        if self._log is not None:
            self._read(self._log)

    def _read(self, path: Path) -> None:
        """Count the statements logged since the last call."""
        with path.open("rb") as log:
            if log.seek(0, SEEK_END) < self._offset:
                # The log was rotated; up to a second of it may be lost.
                self._offset, self._rest = 0, b""
            log.seek(self._offset)
            while data := log.read(READ_BYTES):
                self._offset += len(data)
                *lines, self._rest = (self._rest + data).split(b"\n")
                self._logged += _executed(b"\n".join(lines))


def _executed(log: bytes) -> int:
    """Return the number of statements of services in a piece of the log."""
    return sum(found[1] != b"postgres" for found in EXECUTED.finditer(log))
