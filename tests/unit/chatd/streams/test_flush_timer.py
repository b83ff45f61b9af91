"""The beat of a process, and how long it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from chatd.streams.engine.flush_timer import INTERVAL_S, INTERVAL_S_MAX, FlushInterval, FlushTimer
from parley.clock import FakeClock
from parley.tasks import BackgroundTasks
from support.host.supervised import supervision


@asynccontextmanager
async def beating(clock: FakeClock) -> AsyncIterator[FlushTimer]:
    flush_timer = FlushTimer(clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(flush_timer.run())
        yield flush_timer
        running.cancel()


def test_a_process_whose_beats_come_late_makes_them_longer_and_then_short_again() -> None:
    pace = FlushInterval()
    assert pace.interval_s == INTERVAL_S
    pace.observe(0.02)
    assert pace.interval_s == pytest.approx(INTERVAL_S + 0.04)
    pace.observe(-1.0)
    assert pace.interval_s == pytest.approx(INTERVAL_S + 0.03)
    pace.observe(9.0)
    assert pace.interval_s == INTERVAL_S_MAX
    for _ in range(100):
        pace.observe(0.0)
    assert pace.interval_s == pytest.approx(INTERVAL_S)


def test_a_process_is_late_once_its_beats_are_and_not_for_a_moment() -> None:
    pace = FlushInterval()
    lateness = []
    for late_s in (0.0, 0.001, 0.001, 0.02, 0.0, 0.0, 0.0, 0.0, 0.0):
        pace.observe(late_s)
        lateness.append(pace.is_late)
    assert lateness == [False] * 3 + [True] * 5 + [False]


async def test_what_waits_is_done_on_the_next_beat_and_once() -> None:
    clock = FakeClock()
    done: asyncio.Queue[str] = asyncio.Queue()
    async with beating(clock) as flush_timer:
        for name in ("first", "second"):
            flush_timer.at_next_flush(partial(done.put_nowait, name))
        assert await clock.until_sleeping() == INTERVAL_S
        clock.advance(INTERVAL_S)
        assert [await done.get(), await done.get()] == ["first", "second"]
        flush_timer.at_next_flush(partial(done.put_nowait, "third"))
        assert await clock.until_sleeping() == INTERVAL_S
        clock.advance(INTERVAL_S)
        assert (await done.get(), done.qsize()) == ("third", 0)


async def test_what_asks_for_the_next_beat_on_one_is_done_on_the_next() -> None:
    clock = FakeClock()
    done: asyncio.Queue[float] = asyncio.Queue()

    def again() -> None:
        done.put_nowait(clock.monotonic())
        flush_timer.at_next_flush(again)

    async with beating(clock) as flush_timer:
        flush_timer.at_next_flush(again)
        for beat in (1, 2, 3):
            clock.advance(await clock.until_sleeping())
            assert await done.get() == pytest.approx(beat * INTERVAL_S)


async def test_a_beat_that_comes_late_is_noticed() -> None:
    clock = FakeClock()
    done: asyncio.Queue[None] = asyncio.Queue()
    async with beating(clock) as flush_timer:
        assert not flush_timer.is_late
        flush_timer.at_next_flush(partial(done.put_nowait, None))
        clock.advance(await clock.until_sleeping() + 0.02)
        await done.get()
        assert flush_timer.is_late
        flush_timer.at_next_flush(partial(done.put_nowait, None))
        assert await clock.until_sleeping() == pytest.approx(INTERVAL_S + 0.04)


async def test_one_that_fails_keeps_the_others_from_nothing() -> None:
    clock = FakeClock()
    done: asyncio.Queue[str] = asyncio.Queue()

    def fail() -> None:
        raise RuntimeError("a bug")

    flush_timer = FlushTimer(clock)
    for do in (partial(done.put_nowait, "first"), fail, partial(done.put_nowait, "third")):
        flush_timer.at_next_flush(do)
    async with asyncio.timeout(5), BackgroundTasks(supervision(clock)) as tasks:
        tasks.keep("timer.flush", flush_timer.run)
        for _ in ("the beat", "the pause after the failure", "the next beat"):
            clock.advance(await clock.until_sleeping())
        assert [await done.get(), await done.get()] == ["first", "third"]
