"""A journal in a thread of its own, so that syncing to disk never holds the event loop up.

Theory: a sync takes milliseconds however much it syncs. So the thread takes all that was asked for
while it synced the last time, does it in one transaction, and answers when that is on disk.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from parley.clock import Clock
from toolrunner.journal.journal import Done, Failed, Journal
from toolrunner.primitives.domain import ProcessId
from toolrunner.primitives.errors import JournalFailed

T = TypeVar("T")

#: So many at once; the rest waits for the next sync.
TOGETHER_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Journal], Any]
    answer: asyncio.Future[Any]


class JournalThread:
    """Does one thing after another with the journal, in the order they were asked.

    Attributes:
        generation: The journal's.
        lost: Processes that an earlier run of the service left, and that nobody looks after.
    """

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop) -> None:
        self.generation = journal.generation
        self.lost = journal.lost
        self._journal = journal
        self._loop = loop
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_stopped = False

    async def run(self, work: Callable[[Journal], T]) -> T:
        """Return what `work` returns; it is done even if nobody waits for it any more.

        It may be done twice, if what was to be done with it failed; only one time counts.

        Raises:
            JournalFailed: The disk does not take it, and so nobody can rely on it.
        """
        if self._is_stopped:
            raise JournalFailed("it is closed")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, answer))
        try:
            return await answer
        except sqlite3.Error as error:
            raise JournalFailed(str(error)) from error

    def serve(self) -> None:
        """Do what is asked until `stop`; for the thread."""
        while jobs := self._taken():
            outcomes = self._journal.together([job.work for job in jobs])
            self._loop.call_soon_threadsafe(_answer, jobs, outcomes)

    def stop(self) -> None:
        """Do what was asked before, and no more."""
        self._is_stopped = True
        self._jobs.put(None)

    def _taken(self) -> list[_Job]:
        """Wait for something to do and return all there is; empty for the end."""
        taken: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            taken.append(job)
            if len(taken) == TOGETHER_MAX:
                break
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
        else:
            if taken:
                # The end comes after what was asked before.
                self._jobs.put(None)
        return taken


def _answer(jobs: Sequence[_Job], outcomes: Sequence[Done | Failed]) -> None:
    for job, outcome in zip(jobs, outcomes, strict=True):
        if job.answer.done():
            continue
        match outcome:
            case Done(value):
                job.answer.set_result(value)
            case Failed(error):
                job.answer.set_exception(error)


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
        journal_thread = JournalThread(journal, loop)
        serving = loop.run_in_executor(thread, journal_thread.serve)
        try:
            yield journal_thread
        finally:
            journal_thread.stop()
            await asyncio.shield(serving)
            await asyncio.shield(loop.run_in_executor(thread, journal.close))
