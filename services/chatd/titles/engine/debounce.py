"""Work about chats that have come to rest: it waits until they have rested for a while.

What a turn is labelled with is for people who look at a list later. A program that answers at once
makes the label obsolete before it is made, and each would cost a call of a model.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import ChatId
from chatd.titles.engine.jobs import Job
from parley.clock import Clock

DEBOUNCE_S = 3.0
DEBOUNCED_MAX = 4096

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job
    due_s: float


class Debouncer:
    """Keeps one job for each chat at rest, and forgets it when the chat goes on.

    Args:
        start: Takes the jobs whose chats have rested.
        clock: Tells for how long.
    """

    def __init__(self, start: Callable[[Job], None], clock: Clock) -> None:
        self._start = start
        self._clock = clock
        # In the order of being due, since all wait equally long.
        self._waiting: dict[ChatId, _Waiting] = {}
        self._is_needed = asyncio.Event()

    def add(self, chat_id: ChatId, job: Job) -> None:
        """Take a job about a chat that has just come to rest, in place of an earlier one."""
        self._waiting.pop(chat_id, None)
        if len(self._waiting) >= DEBOUNCED_MAX:
            logger.warning("a small generation is dropped because too many chats came to rest")
            del self._waiting[next(iter(self._waiting))]
        self._waiting[chat_id] = _Waiting(job, self._clock.monotonic() + DEBOUNCE_S)
        self._is_needed.set()

    def state_changed(self, state: ChatState) -> None:
        """Learn where a chat is now."""
        if state.status is Status.RUNNING:
            self._waiting.pop(state.chat_id, None)

    async def run(self) -> None:
        """Start what is due until this is cancelled."""
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
                self._start(first.job)
