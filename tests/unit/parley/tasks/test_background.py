"""A background task that fails is logged, counted and run again, and ends nothing else."""

import asyncio
import logging
import random  # noqa: TID251 (this is the composition root)

import pytest

from parley.clock import FakeClock
from parley.tasks import BackgroundTasks, ShieldedTasks, Supervision
from parley.telemetry import InMemoryTelemetry


def supervised(clock: FakeClock, telemetry: InMemoryTelemetry) -> Supervision:
    return Supervision.of(telemetry.telemetry.meter, clock, random.Random(1))


def failures(telemetry: InMemoryTelemetry) -> list[str]:
    text = telemetry.telemetry.metrics_text()
    return [line for line in text.splitlines() if line.startswith("parley_background_failures")]


async def test_a_loop_that_fails_is_logged_counted_and_run_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, telemetry, runs = FakeClock(), InMemoryTelemetry(), asyncio.Queue[int]()

    async def loop() -> None:
        runs.put_nowait(runs.qsize())
        raise RuntimeError("a bug")

    async with asyncio.timeout(5), BackgroundTasks(supervised(clock, telemetry)) as tasks:
        tasks.keep("partials.write", loop)
        pauses_s = []
        for _ in range(12):
            await runs.get()
            pauses_s.append(await clock.until_sleeping())
            clock.advance(pauses_s[-1])
    assert all(0.05 <= pause_s <= 30 for pause_s in pauses_s)
    assert pauses_s[0] <= 0.1
    assert pauses_s[-1] >= 15
    assert failures(telemetry) == ['parley_background_failures_total{task="partials.write"} 12.0']
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert all("a bug" in (record.exc_text or "") for record in caplog.records)


async def test_a_loop_that_ran_well_for_long_is_run_again_soon() -> None:
    clock, runs = FakeClock(), asyncio.Queue[None]()

    async def loop() -> None:
        runs.put_nowait(None)
        await clock.sleep(100)
        raise RuntimeError("a bug")

    async with asyncio.timeout(5), BackgroundTasks(supervised(clock, InMemoryTelemetry())) as tasks:
        tasks.keep("slow", loop)
        for _ in range(8):
            await runs.get()
            assert await clock.until_sleeping() == pytest.approx(100)
            clock.advance(100)
            pause_s = await clock.until_sleeping()
            assert pause_s <= 0.1
            clock.advance(pause_s)


async def test_the_failure_of_one_task_touches_no_other() -> None:
    clock, telemetry, going_on = FakeClock(), InMemoryTelemetry(), asyncio.Event()

    async def fail() -> None:
        raise RuntimeError("a bug")

    async def wait() -> None:
        await going_on.wait()

    async with asyncio.timeout(5), BackgroundTasks(supervised(clock, telemetry)) as tasks:
        waiting = tasks.create_task(wait())
        await tasks.create_task(fail(), name="one look")
        with pytest.raises(RuntimeError):
            await tasks.complete(fail())
        assert not waiting.done()
        going_on.set()
    assert failures(telemetry) == ['parley_background_failures_total{task="one look"} 1.0']


async def test_at_the_end_loops_are_cancelled_and_work_is_awaited() -> None:
    clock, ended = FakeClock(), list[str]()

    async def loop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("loop")

    async def work() -> None:
        await asyncio.to_thread(lambda: None)
        ended.append("work")

    async with asyncio.timeout(5), BackgroundTasks(supervised(clock, InMemoryTelemetry())) as tasks:
        tasks.keep("loop", loop)
        tasks.create_task(work())
        await asyncio.to_thread(lambda: None)
    assert sorted(ended) == ["loop", "work"]


async def test_the_error_of_the_owner_is_raised_as_it_is() -> None:
    async def fail() -> None:
        async with BackgroundTasks(supervised(FakeClock(), InMemoryTelemetry())) as tasks:
            tasks.keep("loop", asyncio.Event().wait)
            raise KeyError("mine")

    with pytest.raises(KeyError):
        await fail()


async def test_work_goes_on_when_its_caller_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    begun, may_end, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await may_end.wait()
        done.append("work")
        raise RuntimeError("nobody hears this")

    async with asyncio.timeout(5), asyncio.TaskGroup() as group, ShieldedTasks() as completions:
        caller = group.create_task(completions.complete(work()))
        await begun.wait()
        caller.cancel()
        await asyncio.wait((caller,))
        assert caller.cancelled()
        may_end.set()
    assert done == ["work"]
    assert ["nobody hears this" in record.message for record in caplog.records] == [True]
