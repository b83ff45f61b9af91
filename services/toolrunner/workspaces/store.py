"""The placements of this node on disk: one SQLite file, in a thread of its own.

A placement and the response of the request that changed it are committed together, with a full
sync, so that a request that is repeated after a crash finds either both or neither. Of a removed
workspace only the placement epoch is kept, as long as requests may still name an older one.

The file is not the journal's: a damaged journal may be moved away, and then only the outcomes of
open calls are unknown, while the node keeps its id and its workspaces.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from toolrunner.journal.statements import transaction
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import JournalFailed, JournalUnusable, RequestIdReused
from toolrunner.workspaces.domain.placement import HostState, Placement

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
#: Older responses are dropped; requests are repeated within minutes.
REQUESTS_MAX: Final = 10_000
#: Removed workspaces are dropped after this time, and the oldest when there are too many.
REMOVED_KEPT: Final = timedelta(days=7)
REMOVED_MAX: Final = 10_000
_SCHEMA: Final = (
    "CREATE TABLE placements (workspace_id TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE requests (number INTEGER PRIMARY KEY, request_id TEXT NOT NULL UNIQUE,"
    " method TEXT NOT NULL, body_hash BLOB NOT NULL, response BLOB)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that changes something."""

    request_id: str
    method: str
    body_hash: bytes


#: A request and its response; None while there is none.
Answer = tuple[Request, bytes | None]


class PlacementFile:
    """The open file; for one thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._prepare(path)
        except sqlite3.Error as error:
            remedy = f"{error}; check that the directory can be written and has room"
            raise JournalUnusable(path, remedy) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def placements(self) -> tuple[Placement, ...]:
        """Return all current and past placements."""
        rows = self._connection.execute("SELECT record FROM placements")
        return tuple(msgspec.json.decode(row[0], type=Placement) for row in rows)

    def answer(self, request: Request) -> bytes | None:
        """Return the response of a request; None if it is new or not answered yet.

        Raises:
            RequestIdReused: The id names another request.
        """
        row = self._connection.execute(
            "SELECT method, body_hash, response FROM requests WHERE request_id = ?",
            (request.request_id,),
        ).fetchone()
        if row is None:
            return None
        if (row[0], row[1]) != (request.method, request.body_hash):
            raise RequestIdReused(request.request_id)
        response: bytes | None = row[2]
        return response

    def commit(
        self,
        placement: Placement | None,
        answers: Sequence[Answer],
        forgotten: Sequence[Placement] = (),
    ) -> None:
        """Store a placement and responses, and delete the forgotten ones, in one transaction."""
        with transaction(self._connection):
            if placement is not None:
                self._connection.execute(
                    "INSERT INTO placements VALUES (?, ?)"
                    " ON CONFLICT (workspace_id) DO UPDATE SET record = excluded.record",
                    (placement.workspace_id, msgspec.json.encode(placement)),
                )
            self._connection.executemany(
                # A workspace that was placed again meanwhile has another record.
                "DELETE FROM placements WHERE workspace_id = ? AND record = ?",
                [(each.workspace_id, msgspec.json.encode(each)) for each in forgotten],
            )
            for request, response in answers:
                self._put_request(request, response)

    def fact(self, name: str, otherwise: str) -> str:
        """Return the value of a name; the given one is stored if there is none."""
        self._connection.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, otherwise))
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        value: str = row[0]
        return value

    def _put_request(self, request: Request, response: bytes | None) -> None:
        number = self._connection.execute(
            "INSERT INTO requests (request_id, method, body_hash, response) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (request_id) DO UPDATE"
            " SET response = coalesce(excluded.response, response)"
            " RETURNING number",
            (request.request_id, request.method, request.body_hash, response),
        ).fetchone()[0]
        self._connection.execute(
            "DELETE FROM requests WHERE number <= ? AND response IS NOT NULL",
            (number - REQUESTS_MAX,),
        )

    def _prepare(self, path: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise JournalUnusable(path, "it was written by a newer Parley; run that one")
        if version == 0:
            with transaction(self._connection):
                for statement in _SCHEMA:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


class Placements:
    """The placements in memory, and the thread that stores them on disk.

    Attributes:
        all: The placements as they are on disk, by workspace; changed by the event loop only.
        node_id: The id of this node, generated once.
    """

    def __init__(self, file: PlacementFile, thread: ThreadPoolExecutor, node_id: str) -> None:
        self.all: dict[WorkspaceId, Placement] = {
            placement.workspace_id: placement for placement in file.placements()
        }
        self.node_id = node_id
        self._file = file
        self._thread = thread

    async def answer(self, request: Request) -> bytes | None:
        """Return the response of a request; None if it is new or not answered yet.

        Raises:
            RequestIdReused: The id names another request.
            JournalFailed: The disk read failed.
        """
        return await self._run(lambda: self._file.answer(request))

    async def commit(self, placement: Placement | None, *answers: Answer) -> None:
        """Store a placement and responses, in one transaction.

        Raises:
            JournalFailed: The disk write failed.
        """
        forgotten = () if placement is None else outdated(self.all, placement)

        def know() -> None:
            if placement is not None:
                self.all[placement.workspace_id] = placement
            for each in forgotten:
                if self.all.get(each.workspace_id) == each:
                    del self.all[each.workspace_id]

        await self._run(lambda: self._file.commit(placement, answers, forgotten), know)

    async def settled(self) -> None:
        """Return when all pending commits are done."""
        await self._run(lambda: None)

    async def _run(self, work: Callable[[], T], then: Callable[[], None] = lambda: None) -> T:
        """Run work in the thread, then `then` in the loop, even if the caller is cancelled."""
        working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        working.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else then()
        )
        try:
            return await asyncio.shield(working)
        except sqlite3.Error as error:
            raise JournalFailed(str(error)) from error


def outdated(known: Mapping[WorkspaceId, Placement], newest: Placement) -> tuple[Placement, ...]:
    """Return the removed placements to delete when one more is removed.

    Args:
        known: The placements.
        newest: The placement that is added.
    """
    if newest.state is not HostState.REMOVED:
        return ()
    removed = sorted(
        (each for each in known.values() if each.state is HostState.REMOVED),
        key=lambda each: each.changed_at,
        reverse=True,
    )
    before = newest.changed_at - REMOVED_KEPT
    return tuple(
        each
        for rank, each in enumerate(removed, 1)
        if (each.changed_at < before or rank >= REMOVED_MAX)
        and each.workspace_id != newest.workspace_id
    )


@asynccontextmanager
async def open_placements(path: Path, *, new_id: Callable[[], str]) -> AsyncIterator[Placements]:
    """Open the placements in their thread, in a context.

    Raises:
        JournalUnusable: The file cannot be read or written.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="placements") as thread:

        def opened() -> tuple[PlacementFile, Placements]:
            file = PlacementFile(path)
            return file, Placements(file, thread, file.fact("node_id", new_id()))

        file, placements = await loop.run_in_executor(thread, opened)
        try:
            yield placements
        finally:
            await asyncio.shield(loop.run_in_executor(thread, file.close))
