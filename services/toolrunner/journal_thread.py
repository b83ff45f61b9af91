"""A journal in a thread of its own, so that syncing to disk never holds the event loop up."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from parley.clock import Clock
from toolrunner.domain import ProcessId
from toolrunner.errors import JournalFailed
from toolrunner.journal import Journal

T = TypeVar("T")


class JournalThread:
    """Does one thing after another with the journal, in the order they were asked.

    Attributes:
        generation: The journal's.
        lost: Processes that an earlier run of the service left, and that nobody looks after.
    """

    def __init__(self, journal: Journal, thread: ThreadPoolExecutor) -> None:
        self.generation = journal.generation
        self.lost = journal.lost
        self._journal = journal
        self._thread = thread

    async def run(self, work: Callable[[Journal], T]) -> T:
        """Return what `work` returns; it is done even if nobody waits for it any more.

        Raises:
            JournalFailed: The disk does not take it, and so nobody can rely on it.
        """
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.shield(loop.run_in_executor(self._thread, work, self._journal))
        except sqlite3.Error as error:
            raise JournalFailed(str(error)) from error


@asynccontextmanager
async def open_journal(
    path: Path,
    *,
    new_generation: str,
    boot_id: str,
    clock: Clock,
    adopted: Collection[ProcessId] = (),
) -> AsyncIterator[JournalThread]:
    """Have the journal open in its thread.

    Raises:
        JournalUnusable: Another process has it, or it cannot be read or written.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="journal") as thread:

        def opened() -> Journal:
            return Journal.open(
                path,
                new_generation=new_generation,
                boot_id=boot_id,
                clock=clock,
                adopted=adopted,
            )

        journal = await loop.run_in_executor(thread, opened)
        try:
            yield JournalThread(journal, thread)
        finally:
            await asyncio.shield(loop.run_in_executor(thread, journal.close))
