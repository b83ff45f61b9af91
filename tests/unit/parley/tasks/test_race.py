"""The first of several coroutines decides, and none of the others runs on."""

import asyncio

import pytest

from parley.clock import FakeClock
from parley.tasks import Overtaken, first_of, is_set_within, run_unless


class Waiting:
    """Work that never ends and notes that it was cancelled."""

    def __init__(self) -> None:
        self.was_cancelled = False

    async def wait(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


async def returned(value: int) -> int:
    return value


async def failed() -> int:
    raise KeyError("key") from ValueError("value")


async def test_work_that_ends_first_gives_its_result_and_the_ends_are_cancelled() -> None:
    end = Waiting()
    assert await run_unless(returned(7), end.wait()) == 7
    assert end.was_cancelled


async def test_work_that_fails_raises_its_own_error_with_its_cause() -> None:
    with pytest.raises(KeyError, match="key") as raised:
        await run_unless(failed(), Waiting().wait())
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(KeyError, match="key") as raised:
        await first_of(failed())
    assert isinstance(raised.value.__cause__, ValueError)


async def test_work_is_cancelled_when_one_of_the_ends_returns() -> None:
    work, stopping = Waiting(), asyncio.Event()
    stopping.set()
    with pytest.raises(Overtaken):
        await run_unless(work.wait(), Waiting().wait(), stopping.wait())
    assert work.was_cancelled


async def test_a_cancelled_race_cancels_its_work_even_if_that_fails_then() -> None:
    begun = asyncio.Event()

    async def stubborn() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("while it was cancelled")

    async with asyncio.TaskGroup() as tasks:
        racing = tasks.create_task(run_unless(stubborn(), Waiting().wait()))
        await begun.wait()
        racing.cancel()
    assert racing.cancelled()


async def test_an_event_is_awaited_for_a_time_of_the_clock() -> None:
    clock, event = FakeClock(), asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        missed = tasks.create_task(is_set_within(event, 3, clock))
        assert await clock.until_sleeping() == 3
        clock.advance(3)
        assert not await missed
        seen = tasks.create_task(is_set_within(event, 3, clock))
        await clock.until_sleeping()
        event.set()
        assert await seen
    assert await is_set_within(event, 3, clock)
