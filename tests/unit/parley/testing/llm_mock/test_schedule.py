"""One sleeper for all streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from parley.clock import FakeClock
from parley.testing.llm_mock.playback.timers import GRAIN_S, Timers


@asynccontextmanager
async def scheduling(clock: FakeClock) -> AsyncIterator[tuple[Timers, "asyncio.Queue[str]"]]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        schedule = Timers(clock, tasks)
        yield schedule, asyncio.Queue()
        schedule.stop()


async def test_what_is_due_is_done_in_its_order_by_one_sleeper() -> None:
    clock = FakeClock()
    async with scheduling(clock) as (schedule, done):
        for name, delay_s in (("third", 3), ("first", 1), ("second", 1)):
            schedule.after(delay_s, partial(done.put_nowait, name))
        assert await clock.until_sleeping() == 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await clock.until_sleeping(2)
        clock.advance(1)
        assert [await done.get(), await done.get()] == ["first", "second"]
        assert await clock.until_sleeping() == 2
        clock.advance(2)
        assert await done.get() == "third"


async def test_something_sooner_is_not_kept_waiting() -> None:
    clock = FakeClock()
    async with scheduling(clock) as (schedule, done):
        schedule.after(300, partial(done.put_nowait, "later"))
        assert await clock.until_sleeping() == 300
        schedule.after(2, partial(done.put_nowait, "sooner"))
        assert await clock.until_sleeping() == 2
        clock.advance(2)
        assert await done.get() == "sooner"
        assert await clock.until_sleeping() == 298


async def test_for_what_is_called_off_nobody_sleeps() -> None:
    clock = FakeClock()
    async with scheduling(clock) as (schedule, done):
        first = schedule.after(1, partial(done.put_nowait, "called off"))
        schedule.after(2, partial(done.put_nowait, "done"))
        assert await clock.until_sleeping() == 1
        schedule.call_off(first)
        assert await clock.until_sleeping() == 2
        clock.advance(2)
        assert await done.get() == "done"


async def test_what_is_done_may_ask_to_be_done_again() -> None:
    clock = FakeClock()
    async with scheduling(clock) as (schedule, done):

        def again() -> None:
            done.put_nowait(f"at {clock.monotonic():g}")
            schedule.after(1, again)

        schedule.after(1, again)
        for second in (1, 2, 3):
            assert await clock.until_sleeping() == 1
            clock.advance(1)
            assert await done.get() == f"at {second}"


async def test_what_falls_due_almost_together_is_done_together() -> None:
    clock = FakeClock()
    async with scheduling(clock) as (schedule, done):
        for number in range(3):
            schedule.after(1 + number * GRAIN_S / 8, partial(done.put_nowait, str(number)))
        await clock.until_sleeping()
        clock.advance(1)
        assert [await done.get() for _ in range(3)] == ["0", "1", "2"]


async def test_who_was_idle_begins_anew() -> None:
    clock = FakeClock()
    async with scheduling(clock) as (schedule, done):
        for name in ("once", "twice"):
            schedule.after(1, partial(done.put_nowait, name))
            assert await clock.until_sleeping() == 1
            clock.advance(1)
            assert await done.get() == name
