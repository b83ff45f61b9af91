"""The queue of calls that start: bounded, fair to users, and never stuck."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from mcpgateway.runtime.start_queue import StartQueue
from mcpgateway.servers.errors import Overloaded


class Starts:
    """Calls that take a place, note that, and keep it until they are let go."""

    def __init__(self, queue: StartQueue, tasks: asyncio.TaskGroup) -> None:
        self.queue = queue
        self.tasks = tasks
        self.started: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def begin(self, name: str) -> "asyncio.Task[None]":
        self.gates[name] = asyncio.Event()
        return self.tasks.create_task(self._run(name))

    async def _run(self, name: str) -> None:
        async with self.queue.place(name[0], None):
            self.started.append(name)
            await self.gates[name].wait()

    async def let_go(self, name: str) -> None:
        self.gates[name].set()
        await settled()


async def settled() -> None:
    """Let everything go on that can."""
    for _ in range(5):
        await asyncio.sleep(0)  # noqa: TID251 (only lets others run)


async def test_users_take_turns_however_many_calls_one_of_them_starts() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        starts = Starts(StartQueue(places_max=1, places_per_user_max=1), tasks)
        for name in ("a1", "a2", "a3", "b1", "c1"):
            starts.begin(name)
            await settled()
        for name in ("a1", "a2", "b1", "c1", "a3"):
            assert starts.started[-1] == name
            await starts.let_go(name)
    assert starts.started == ["a1", "a2", "b1", "c1", "a3"]


async def test_one_user_leaves_places_for_others() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        starts = Starts(StartQueue(places_max=3, places_per_user_max=2), tasks)
        for name in ("a1", "a2", "a3", "b1"):
            starts.begin(name)
            await settled()
        assert starts.started == ["a1", "a2", "b1"]
        for name in ("a1", "a2", "b1", "a3"):
            await starts.let_go(name)


async def test_a_place_that_does_not_come_in_time_is_refused() -> None:
    queue = StartQueue(places_max=1, places_per_user_max=1)
    async with queue.place("a", None):
        with pytest.raises(Overloaded, match="try again shortly"):
            async with queue.place("b", 0.01):
                raise AssertionError
    async with queue.place("b", 0.01):
        pass


async def test_no_more_calls_wait_than_may() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        queue = StartQueue(places_max=1, places_per_user_max=1, waiting_max=1)
        starts = Starts(queue, tasks)
        starts.begin("a1")
        starts.begin("b1")
        await settled()
        with pytest.raises(Overloaded):
            async with queue.place("c", None):
                raise AssertionError
        for name in ("a1", "b1"):
            await starts.let_go(name)


async def test_callers_that_leave_give_up_their_place_in_the_queue() -> None:
    queue = StartQueue(places_max=1, places_per_user_max=1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, AsyncExitStack() as held:
        await held.enter_async_context(queue.place("a", None))
        starts = Starts(queue, tasks)
        waiting, granted = starts.begin("b1"), starts.begin("c1")
        await settled()
        waiting.cancel()
        await settled()
        # It is granted the place, and is cancelled before it can take it.
        await held.aclose()
        granted.cancel()
        await settled()
        async with queue.place("d", 1):
            pass
    assert starts.started == []


async def test_a_user_who_fills_the_queue_keeps_no_other_user_out() -> None:
    queue = StartQueue(places_max=1, places_per_user_max=1, waiting_max=3)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, AsyncExitStack() as held:
        await held.enter_async_context(queue.place("x", None))
        starts = Starts(queue, tasks)
        for name in ("a1", "a2"):
            starts.begin(name)
        await settled()
        last = tasks.create_task(refused_in(queue, "a"))
        await settled()
        starts.begin("b1")
        await settled()
        assert last.done()
        with pytest.raises(Overloaded):
            async with queue.place("a", None):
                raise AssertionError
        await held.aclose()
        await settled()
        for name in ("a1", "b1", "a2"):
            assert starts.started[-1] == name
            await starts.let_go(name)


async def refused_in(queue: StartQueue, user_id: str, wait_s: float | None = None) -> None:
    """Wait until the queue refuses a call of a user."""
    with pytest.raises(Overloaded):
        async with queue.place(user_id, wait_s):
            raise AssertionError


async def test_a_freed_place_is_for_other_users_and_is_freed_once() -> None:
    queue = StartQueue(places_max=1, places_per_user_max=1)
    async with asyncio.timeout(5):
        async with queue.place("a", None) as free:
            free()
            async with queue.place("b", None):
                free()
                await refused_in(queue, "c", 0.01)
            await refused_in(queue, "a", 0.01)
        async with queue.place("a", None) as free_late:
            pass
        free_late()
        async with queue.place("a", None):
            await refused_in(queue, "b", 0.01)
