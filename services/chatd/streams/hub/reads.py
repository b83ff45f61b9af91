"""Reads of chats for the hubs: with retries, and batched.

Requests that wait at the same time are read by one statement. A single request is read at once.
While `STATEMENTS_AT_ONCE` statements run, all other requests wait and are read by the next one:
thousands of simultaneous requests are not rejected for that, and use few of the connections that
the turns need.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from chatd.chats.domain.chat import Message
from chatd.primitives.domain.ids import ChatId
from chatd.streams.store.chat_reads import ChatReadRequest, FollowedChat
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

logger = logging.getLogger(__name__)

READ_TRIES = 5
READ_PAUSE_S = 0.1
READ_PAUSE_S_MAX = 1.0

BATCH = 32
STATEMENTS_AT_ONCE = 2


class Reads(Protocol):
    """The reads of a hub."""

    async def read(self, asked: ChatReadRequest) -> FollowedChat | None:
        """Return the requested chat; None if it is gone or the reader may not read it."""
        ...

    async def read_page(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages with a larger id that changed after a version."""
        ...


async def read_patiently(reads: Reads, clock: Clock, asked: ChatReadRequest) -> FollowedChat | None:
    """Return the requested chat, with retries; None if it is gone or the reader may not read it.

    Raises:
        DatabaseUnavailable: All tries failed.
    """
    pause_s = READ_PAUSE_S
    for tries in range(1, READ_TRIES + 1):
        try:
            return await reads.read(asked)
        except DatabaseUnavailable as error:
            if tries == READ_TRIES:
                logger.warning("a chat cannot be followed: %s", error)
                raise
            await clock.sleep(pause_s)
            pause_s = min(2 * pause_s, READ_PAUSE_S_MAX)
    raise AssertionError("the last try returns or raises")


_Waiting = tuple[ChatReadRequest, "asyncio.Future[FollowedChat | None]"]


class BatchReader(Protocol):
    """The reads shared by all hubs."""

    async def read(self, asked: Sequence[ChatReadRequest]) -> tuple[FollowedChat | None, ...]:
        """Return the requested chats; None for one that is gone or that the reader may not read."""
        ...

    async def read_page(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages with a larger id that changed after a version."""
        ...

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        """Return the current versions of those chats that exist."""
        ...


class BatchedReads:
    """Reads for hubs and their readers, with few statements and few at a time."""

    def __init__(
        self, reads: BatchReader, spawn: Callable[[Coroutine[object, object, None]], object]
    ) -> None:
        self._reads = reads
        self._spawn = spawn
        self._waiting: deque[_Waiting] = deque()
        self._running = 0
        self._page_slots = asyncio.Semaphore(STATEMENTS_AT_ONCE)

    async def read(self, asked: ChatReadRequest) -> FollowedChat | None:
        """Return the requested chat; None if it is gone or the reader may not read it.

        Raises:
            DatabaseUnavailable: It cannot be read now.
        """
        answer: asyncio.Future[FollowedChat | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        if self._running < STATEMENTS_AT_ONCE:
            self._running += 1
            self._spawn(self._run())
        return await answer

    async def read_page(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages with a larger id that changed after a version."""
        async with self._page_slots:
            return await self._reads.read_page(
                chat_id, behind_id=behind_id, after=after, upto=upto, limit=limit
            )

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        """Return the current versions of those chats that exist."""
        return await self._reads.versions(chat_ids)

    async def _run(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            self._running -= 1

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < BATCH:
            waiting = self._waiting.popleft()
            if not waiting[1].done():  # Else the request was cancelled.
                batch.append(waiting)
        return batch

    async def _answer(self, batch: list[_Waiting]) -> None:
        try:
            found = await self._reads.read([asked for asked, _ in batch])
        except DatabaseUnavailable as error:
            _fail(batch, error)
        except Exception as error:
            if len(batch) == 1:
                _fail(batch, error)
            # A failure caused by one request must not fail the others of its batch.
            for waiting in batch if len(batch) > 1 else ():
                await self._answer([waiting])
        else:
            for (_, answer), each in zip(batch, found, strict=True):
                if not answer.done():
                    answer.set_result(each)


def _fail(batch: list[_Waiting], error: Exception) -> None:
    for _, answer in batch:
        if not answer.done():
            answer.set_exception(error)
