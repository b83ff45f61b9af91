"""Delays jobs of idle chats until they have been idle for a while.

Turn labels are shown in lists. A client that sends the next message at once makes the label
obsolete before it is generated, and each label would cost a model call.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.titles.engine.jobs import Job
from parley.clock import Clock

DEBOUNCE_S = 3.0
DEBOUNCED_MAX = 4096

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    owner_id: OwnerId
    job: Job
    due_s: float


class Debouncer:
    """Keeps one job for each idle chat, and drops it when the chat runs again.

    Args:
        start: Called with the owners and the jobs of chats that have been idle long enough.
        clock: The clock.
    """

    def __init__(self, start: Callable[[OwnerId, Job], None], clock: Clock) -> None:
        self._start = start
        self._clock = clock
        # Ordered by due time, since all wait equally long.
        self._waiting: dict[ChatId, _Waiting] = {}
        self._is_needed = asyncio.Event()

    def add(self, chat_id: ChatId, owner_id: OwnerId, job: Job) -> None:
        """Schedule a job of a chat that has just become idle; it replaces an earlier one."""
        self._waiting.pop(chat_id, None)
        if len(self._waiting) >= DEBOUNCED_MAX:
            logger.warning("a small generation is dropped because too many chats came to rest")
            del self._waiting[next(iter(self._waiting))]
        self._waiting[chat_id] = _Waiting(owner_id, job, self._clock.monotonic() + DEBOUNCE_S)
        self._is_needed.set()

    def state_changed(self, state: ChatState) -> None:
        """Drop the job of a chat that runs again."""
        if state.status is Status.RUNNING:
            self._waiting.pop(state.chat_id, None)

    async def run(self) -> None:
        """Start due jobs until cancelled."""
        while True:
            if not self._waiting:
                self._is_needed.clear()
                await self._is_needed.wait()
                continue
            chat_id, first = next(iter(self._waiting.items()))
            left_s = first.due_s - self._clock.monotonic()
            if left_s > 0:
                await self._clock.sleep(left_s)
            else:
                del self._waiting[chat_id]
                self._start(first.owner_id, first.job)
