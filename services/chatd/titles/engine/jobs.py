"""A queue of background jobs with limited concurrency; jobs are dropped when it is full."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

JOBS_MAX = 4
WAITING_MAX = 256

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class JobQueue:
    """Runs jobs whose result no caller waits for.

    Args:
        jobs_max: How many run at once.
        waiting_max: How many may wait; more are dropped.
    """

    def __init__(self, jobs_max: int = JOBS_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._jobs_max = jobs_max
        self._dropped = 0
        self._waiting: asyncio.Queue[Job] = asyncio.Queue(waiting_max)

    def add(self, job: Job) -> None:
        """Queue a job without waiting."""
        try:
            self._waiting.put_nowait(job)
        except asyncio.QueueFull:
            if not self._dropped:
                logger.warning("small generations are dropped because too many wait")
            self._dropped += 1

    async def run(self) -> None:
        """Run queued jobs until cancelled; running jobs are cancelled too."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._jobs_max):
                group.create_task(self._work())

    async def done(self) -> None:
        """Wait until all queued jobs have ended."""
        await self._waiting.join()

    async def _work(self) -> None:
        while True:
            job = await self._waiting.get()
            try:
                await job()
            except Exception:
                logger.exception("a small generation failed")
            finally:
                self._waiting.task_done()
                if self._dropped and self._waiting.empty():
                    logger.warning("%d small generations were dropped", self._dropped)
                    self._dropped = 0
