"""The clock that tests move by hand."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from parley.clock import FakeClock

START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_time_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock(START)

    before = (clock.now(), clock.monotonic())
    clock.advance(90)

    assert before == (START, 0.0)
    assert (clock.now(), clock.monotonic()) == (START + timedelta(seconds=90), 90.0)


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().advance(-1)


async def test_a_sleeper_wakes_when_its_delay_is_over_and_not_before() -> None:
    clock = FakeClock()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        sleeper = tasks.create_task(clock.sleep(10))
        assert await clock.until_sleeping() == 10

        clock.advance(9.5)
        assert await clock.until_sleeping() == 0.5
        assert not sleeper.done()

        clock.advance(0.5)

    assert sleeper.done()


async def test_sleepers_wake_in_the_order_of_their_delays() -> None:
    clock = FakeClock()
    woken: list[str] = []

    async def sleep(name: str, delay_s: float) -> None:
        await clock.sleep(delay_s)
        woken.append(name)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        for name, delay_s in (("late", 3), ("early", 1), ("early too", 1), ("middle", 2)):
            tasks.create_task(sleep(name, delay_s))
        assert await clock.until_sleeping(4) == 1
        clock.advance(3)

    assert woken == ["early", "early too", "middle", "late"]


async def test_a_test_waits_for_the_task_that_sleeps_so_long() -> None:
    clock = FakeClock()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(clock.sleep(5))
        await clock.until_sleeping_for(5)
        waiting = tasks.create_task(clock.until_sleeping_for(4))
        assert not waiting.done()
        clock.advance(1)
        tasks.create_task(clock.sleep(9))
        await waiting
        clock.advance(9)


@pytest.mark.parametrize("delay_s", [0, -1])
async def test_no_delay_is_no_sleep(delay_s: float) -> None:
    async with asyncio.timeout(5):
        await FakeClock().sleep(delay_s)


async def test_a_cancelled_sleeper_is_not_counted() -> None:
    clock = FakeClock()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        cancelled = tasks.create_task(clock.sleep(1))
        tasks.create_task(clock.sleep(7))
        await clock.until_sleeping(2)

        cancelled.cancel()
        await asyncio.wait([cancelled])

        assert await clock.until_sleeping() == 7
        clock.advance(7)


async def test_waiting_for_sleepers_returns_once_there_are_enough() -> None:
    clock = FakeClock()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        enough = tasks.create_task(clock.until_sleeping(2))
        tasks.create_task(clock.sleep(4))
        await clock.until_sleeping(1)
        assert not enough.done()

        tasks.create_task(clock.sleep(2))
        assert await enough == 2
        clock.advance(4)
