"""A queue of background jobs with limited concurrency, fair to users; a full queue drops jobs."""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable

from chatd.primitives.domain.ids import OwnerId

JOBS_MAX = 4
WAITING_MAX = 256

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class JobQueue:
    """Runs jobs whose result no caller waits for; users take turns in having one run.

    Args:
        jobs_max: How many run at once.
        waiting_max: How many may wait; more are dropped, of the user with the most waiting jobs.
    """

    def __init__(self, jobs_max: int = JOBS_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._jobs_max = jobs_max
        self._waiting_max = waiting_max
        self._dropped = 0
        # The user whose turn is next comes first.
        self._waiting: OrderedDict[OwnerId, deque[Job]] = OrderedDict()
        self._waiting_count = asyncio.Semaphore(0)
        self._unfinished = 0
        self._is_done = asyncio.Event()
        self._is_done.set()

    def add(self, owner_id: OwnerId, job: Job) -> None:
        """Queue a job of a user without waiting."""
        if sum(map(len, self._waiting.values())) < self._waiting_max:
            self._unfinished += 1
            self._waiting_count.release()
        else:
            self._note_dropped()
            if not self._drop_for(owner_id):
                return
        self._waiting.setdefault(owner_id, deque()).append(job)
        self._is_done.clear()

    async def run(self) -> None:
        """Run queued jobs until cancelled; running jobs are cancelled too."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._jobs_max):
                group.create_task(self._work())

    async def done(self) -> None:
        """Wait until all queued jobs have ended."""
        await self._is_done.wait()

    async def _work(self) -> None:
        while True:
            await self._waiting_count.acquire()
            job = self._next()
            try:
                await job()
            except Exception:
                logger.exception("a small generation failed")
            finally:
                self._unfinished -= 1
                if not self._unfinished:
                    self._is_done.set()
                if self._dropped and not self._waiting:
                    logger.warning("%d small generations were dropped", self._dropped)
                    self._dropped = 0

    def _next(self) -> Job:
        """Take the first job of the user whose turn it is."""
        owner_id, jobs = self._waiting.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._waiting[owner_id] = jobs
        return job

    def _drop_for(self, owner_id: OwnerId) -> bool:
        """Drop the last job of the user with the most; False if that is the user who adds one."""
        longest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting.get(owner_id, ())) + 1 >= len(self._waiting[longest]):
            return False
        self._waiting[longest].pop()
        return True

    def _note_dropped(self) -> None:
        if not self._dropped:
            logger.warning("small generations are dropped because too many wait")
        self._dropped += 1
