"""Keeps the hosts that workspaces reached, in a small file of each that a restart does not lose."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from parley.tasks import ShieldedTasks
from toolrunner.egress.domain.reached import COPY, UNKNOWN_RECORD, ReachedHost, ReachedRecord
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.threads import OwnThreads

FILE: Final = "reached.json"
PRIVATE: Final = 0o600
#: Connections of all workspaces wait for these, so one slow write should not hold up the others.
THREADS_MAX: Final = 4

logger = logging.getLogger(__name__)


class ReachedNotes(Protocol):
    """Is told of the hosts that workspaces reach."""

    def connection(
        self, workspace_id: WorkspaceId, reached: ReachedHost
    ) -> AbstractAsyncContextManager[None]:
        """Record a host before the workspace gets anything from it, and for later trees until exit.

        Raises:
            OSError: It could not be recorded.
        """
        ...


class NoNotes:
    """Records nothing: for what the node itself fetches."""

    @asynccontextmanager
    async def connection(
        self, workspace_id: WorkspaceId, reached: ReachedHost
    ) -> AsyncIterator[None]:
        """Do nothing."""
        yield


class _Host(msgspec.Struct, frozen=True, array_like=True):
    host: str
    is_git: bool
    count: int


class _Stored(msgspec.Struct, frozen=True):
    trees: dict[str, int]
    hosts: tuple[_Host, ...]
    count: int


class ReachedHosts:
    """The records of all workspaces; only what changes an answer is written.

    Its exit waits for writes under way.

    Args:
        directory_of: Returns the directory of a workspace, which nothing inside of it can write.
    """

    def __init__(self, directory_of: Callable[[WorkspaceId], Path]) -> None:
        self._directory_of = directory_of
        self._records: dict[WorkspaceId, ReachedRecord] = {}
        self._open: dict[WorkspaceId, Counter[ReachedHost]] = {}
        self._locks: dict[WorkspaceId, asyncio.Lock] = {}
        self._writing = ShieldedTasks()
        self._threads = OwnThreads("reached", THREADS_MAX)

    async def __aenter__(self) -> Self:
        await self._writing.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._writing.__aexit__(kind, error, trace)

    async def join(self, workspace_id: WorkspaceId, tree_id: str) -> None:
        """Record that chats of a tree use a workspace from now on.

        What comes over connections that are open already counts for them. If that cannot be
        stored, everything that the workspace ever reached counts.
        """
        try:
            await self._change(
                workspace_id,
                lambda record: record.joined(tree_id, self._open.get(workspace_id, ())),
            )
        except OSError as error:
            logger.warning("the use of workspace %s is not recorded: %s", workspace_id, error)

    @asynccontextmanager
    async def connection(
        self, workspace_id: WorkspaceId, reached: ReachedHost
    ) -> AsyncIterator[None]:
        """Record a host before the workspace gets anything from it, and for later trees until exit.

        Raises:
            OSError: It could not be recorded.
        """
        # A tree that comes while the host is recorded has to find it here.
        counts = self._open.setdefault(workspace_id, Counter())
        counts[reached] += 1
        try:
            await self.note(workspace_id, reached)
            yield
        finally:
            counts[reached] -= 1
            if not counts[reached]:
                del counts[reached]
            if not counts:
                del self._open[workspace_id]

    async def note(self, workspace_id: WorkspaceId, reached: ReachedHost) -> None:
        """Record a host before the workspace gets anything from it.

        Raises:
            OSError: It could not be recorded.
        """
        await self._change(workspace_id, lambda record: record.with_host(reached))

    async def since(self, workspace_id: WorkspaceId, tree_id: str) -> tuple[ReachedHost, ...]:
        """Return the hosts that a workspace reached since a tree of chats uses it."""
        try:
            record = await self._record(workspace_id)
        except OSError as error:
            logger.warning("any host counts as reached by workspace %s: %s", workspace_id, error)
            record = UNKNOWN_RECORD
        return record.since(tree_id)

    async def merge(self, copy_id: WorkspaceId, original_id: WorkspaceId) -> None:
        """Record in a workspace what a copy of it reached, before it gets the files of the copy.

        Raises:
            OSError: It could not be recorded.
        """
        for reached in (await self._record(copy_id)).since(COPY):
            await self.note(original_id, reached)

    def forget(self, workspace_id: WorkspaceId) -> None:
        """Free what is known of a workspace; its file has it."""
        self._records.pop(workspace_id, None)
        lock = self._locks.get(workspace_id)
        if lock is not None and not lock.locked():
            del self._locks[workspace_id]

    async def _change(
        self, workspace_id: WorkspaceId, change: Callable[[ReachedRecord], ReachedRecord]
    ) -> None:
        known, lock = self._records.get(workspace_id), self._locks.get(workspace_id)
        # While a tree is recorded, the record does not say yet what is new for it.
        is_writing = lock is not None and lock.locked()
        if known is None or is_writing or change(known) is not known:
            # A cancelled request leaves its write whole, and in its order.
            await self._writing.complete(self._write(workspace_id, change))

    async def _write(
        self, workspace_id: WorkspaceId, change: Callable[[ReachedRecord], ReachedRecord]
    ) -> None:
        async with self._lock(workspace_id):
            before = await self._loaded(workspace_id)
            after = change(before)
            if after is not before:
                await self._threads.run(_write, self._directory_of(workspace_id) / FILE, after)
            self._records[workspace_id] = after

    async def _record(self, workspace_id: WorkspaceId) -> ReachedRecord:
        known = self._records.get(workspace_id)
        if known is None:
            async with self._lock(workspace_id):
                known = self._records[workspace_id] = await self._loaded(workspace_id)
        return known

    def _lock(self, workspace_id: WorkspaceId) -> asyncio.Lock:
        return self._locks.setdefault(workspace_id, asyncio.Lock())

    async def _loaded(self, workspace_id: WorkspaceId) -> ReachedRecord:
        known = self._records.get(workspace_id)
        if known is not None:
            return known
        return await self._threads.run(_read, self._directory_of(workspace_id) / FILE)


def copy_record(parent: Path, child: Path) -> None:
    """Give a copy of a workspace what is known of its original, by their directories.

    Raises:
        OSError: It could not be read or recorded.
    """
    _write(child / FILE, _read(parent / FILE).copied())


def _read(path: Path) -> ReachedRecord:
    """Read a record; of one that is damaged nothing can be known any more.

    Raises:
        OSError: It cannot be read now, and should not be replaced.
    """
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
    except FileNotFoundError:
        return ReachedRecord()
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        logger.warning("%s is damaged, so any host counts as reached: %s", path, error)
        return UNKNOWN_RECORD
    hosts = {ReachedHost(each.host, each.is_git): each.count for each in stored.hosts}
    return ReachedRecord(stored.trees, hosts, stored.count)


def _write(path: Path, record: ReachedRecord) -> None:
    """Replace the file as a whole, durably."""
    hosts = tuple(_Host(each.host, each.is_git, last) for each, last in record.hosts.items())
    stored = _Stored(dict(record.trees), hosts, record.count)
    unfinished = path.with_suffix(".new")
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
    try:
        os.write(fd, msgspec.json.encode(stored))
        os.fsync(fd)
    finally:
        os.close(fd)
    unfinished.replace(path)
