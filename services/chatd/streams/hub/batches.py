"""Reading chats for many at once: whoever waits at the same moment shares one statement.

One alone is read at once. While a few statements are under way everybody else waits, however many
they are, and goes with the next: thousands who come at the same time are never refused for that,
and take few of the connections that the turns need.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from chatd.chats.domain.chat import Message
from chatd.primitives.domain.ids import ChatId
from chatd.streams.store.following import ChatReadRequest, FollowedChat
from parley.postgres import DatabaseUnavailable

BATCH = 32
STATEMENTS_AT_ONCE = 2

_Waiting = tuple[ChatReadRequest, "asyncio.Future[FollowedChat | None]"]


class BatchReader(Protocol):
    """What all hubs read together."""

    async def read(self, asked: Sequence[ChatReadRequest]) -> tuple[FollowedChat | None, ...]:
        """Return chats as they were asked for; None for one that is gone or not the reader's."""
        ...

    async def stretch(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages behind an id, of the changes after one version."""
        ...

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        """Return the present versions of those chats that exist."""
        ...


class BatchedReads:
    """Reads for hubs and their readers, in few statements and few at a time."""

    def __init__(
        self, reads: BatchReader, spawn: Callable[[Coroutine[object, object, None]], object]
    ) -> None:
        self._reads = reads
        self._spawn = spawn
        self._waiting: deque[_Waiting] = deque()
        self._running = 0
        self._stretching = asyncio.Semaphore(STATEMENTS_AT_ONCE)

    async def read(self, asked: ChatReadRequest) -> FollowedChat | None:
        """Return a chat as it was asked for; None if it is gone or not the reader's.

        Raises:
            DatabaseUnavailable: It cannot be read now.
        """
        answer: asyncio.Future[FollowedChat | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        if self._running < STATEMENTS_AT_ONCE:
            self._running += 1
            self._spawn(self._run())
        return await answer

    async def stretch(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages behind an id, of the changes after one version."""
        async with self._stretching:
            return await self._reads.stretch(
                chat_id, behind_id=behind_id, after=after, upto=upto, limit=limit
            )

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        """Return the present versions of those chats that exist."""
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
            if not waiting[1].done():  # Else nobody waits any more.
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
            # What is wrong with one of them is no concern of the others.
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
