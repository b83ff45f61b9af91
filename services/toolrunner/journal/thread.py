"""The journal in its own thread, so that disk syncs never block the event loop.

Theory: a sync takes milliseconds, whatever its size. So the thread takes all requests that arrived
during the last sync, executes them in one transaction, and answers when that is on disk.
"""

import asyncio
import logging
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

#: At most so many in one transaction; the rest waits for the next.
TOGETHER_MAX: Final = 256

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Journal], Any]
    answer: asyncio.Future[Any]


class JournalThread:
    """Executes work on the journal in the order of the requests.

    Attributes:
        generation: The journal's.
        lost: Processes that an earlier run of the service left, and that are no longer monitored.
    """

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop) -> None:
        self.generation = journal.generation
        self.lost = journal.lost
        self._journal = journal
        self._loop = loop
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_stopped = False

    async def run(self, work: Callable[[Journal], T]) -> T:
        """Return the result of `work`, which is executed even if the caller is cancelled.

        It may be executed twice, if the shared transaction failed; only one execution is committed.

        Raises:
            JournalFailed: The disk write failed, so nothing was committed.
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
        """Execute requests until `stop`; called in the thread."""
        while jobs := self._taken():
            self._loop.call_soon_threadsafe(_answer, jobs, self._outcomes(jobs))

    def _outcomes(self, jobs: Sequence[_Job]) -> Sequence[Done | Failed]:
        """Execute requests; an unexpected failure is their outcome, and does not end the thread."""
        try:
            return self._journal.together([job.work for job in jobs])
        except Exception as error:
            logger.exception("the journal failed unexpectedly; it goes on with the next requests")
            return [Failed(JournalFailed(type(error).__name__)) for _ in jobs]

    def stop(self) -> None:
        """Execute the earlier requests, and stop."""
        self._is_stopped = True
        self._jobs.put(None)

    def _taken(self) -> list[_Job]:
        """Wait for a request and return all that are queued; empty for the end."""
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
                # Stop after the requests that were queued before.
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
    """Open the journal in its thread, in a context.

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
