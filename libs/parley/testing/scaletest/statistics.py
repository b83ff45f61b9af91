"""What PostgreSQL did in a run, counted by itself: its log, its transaction ids, its sessions.

Statements are counted in the log of a server that this user owns. It writes a sample of them, so
that a long run does not fill the disk: about `SAMPLED_MAX`.
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
    """Counts from its start to its end."""

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
            log: Where the server logs to; None if statements cannot be counted.
            statements: About how many there will be.

        Raises:
            OSError: The database cannot be reached.
            asyncpg.PostgresError: It refuses.
            LoggingRefused: It does not log.
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
        """Look at the sessions and the log every second, until this is cancelled."""
        while True:
            await self._look()
            await clock.sleep(LOOK_S)

    async def activity(self) -> DatabaseActivity:
        """Return what happened since the start; nobody may be looking any more."""
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
        """Count what was logged since the last look."""
        with path.open("rb") as log:
            if log.seek(0, SEEK_END) < self._offset:
                # It had grown large and was put aside; a second of it may be lost.
                self._offset, self._rest = 0, b""
            log.seek(self._offset)
            while data := log.read(READ_BYTES):
                self._offset += len(data)
                *lines, self._rest = (self._rest + data).split(b"\n")
                self._logged += _executed(b"\n".join(lines))


def _executed(log: bytes) -> int:
    """Return how many statements of services a piece of the log tells of."""
    return sum(found[1] != b"postgres" for found in EXECUTED.finditer(log))
