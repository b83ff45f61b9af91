"""What is made of a chat at rest is made when it has rested for a while, and once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from chatd.titles.engine.debounce import DEBOUNCE_S, DEBOUNCED_MAX, Debouncer
from chatd.titles.engine.jobs import Job
from parley.clock import FakeClock

A, B = ChatId("a"), ChatId("b")
ANN = OwnerId("ann")


async def note(name: str) -> None:
    """Be a job that is known by its name."""


class Desk:
    """Chats at rest, and the names of the jobs that were begun."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.started: list[str] = []
        self.debouncer = Debouncer(self._start, self.clock)

    def rests(self, chat_id: ChatId, name: str) -> None:
        self.debouncer.add(chat_id, ANN, partial(note, name))

    def _start(self, owner_id: OwnerId, job: Job) -> None:
        assert owner_id == ANN
        assert isinstance(job, partial)
        self.started.append(job.args[0])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(self.debouncer.run())

            async def settled() -> None:
                await asyncio.to_thread(lambda: None)

            yield settled
            task.cancel()


def state_changed(chat_id: ChatId, status: Status) -> ChatState:
    return ChatState(chat_id, status, 1, 1, 0, MessageId(1))


async def test_a_chat_that_has_rested_gets_its_job_done() -> None:
    desk = Desk()
    async with desk.running() as settled:
        desk.rests(A, "a")
        await settled()
        desk.clock.advance(DEBOUNCE_S - 0.1)
        await settled()
        assert desk.started == []
        desk.clock.advance(0.1)
        await settled()
    assert desk.started == ["a"]


async def test_a_chat_that_goes_on_is_left_alone() -> None:
    desk = Desk()
    async with desk.running() as settled:
        desk.rests(A, "a")
        desk.rests(B, "b")
        await settled()
        desk.debouncer.state_changed(state_changed(A, Status.RUNNING))
        desk.debouncer.state_changed(state_changed(B, Status.WAITING))
        desk.clock.advance(DEBOUNCE_S)
        await settled()
    assert desk.started == ["b"]


async def test_the_last_turn_counts() -> None:
    desk = Desk()
    async with desk.running() as settled:
        desk.rests(A, "first")
        await settled()
        desk.clock.advance(DEBOUNCE_S - 1)
        desk.rests(A, "second")
        await settled()
        desk.clock.advance(1)
        await settled()
        assert desk.started == []
        desk.clock.advance(DEBOUNCE_S)
        await settled()
    assert desk.started == ["second"]


async def test_the_oldest_is_dropped_when_too_many_rest() -> None:
    desk = Desk()
    async with desk.running() as settled:
        for number in range(DEBOUNCED_MAX + 1):
            desk.rests(ChatId(str(number)), str(number))
        await settled()
        desk.clock.advance(DEBOUNCE_S)
        await settled()
    assert desk.started == [str(number) for number in range(1, DEBOUNCED_MAX + 1)]
