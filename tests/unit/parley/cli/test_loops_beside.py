"""What the supervisor does beside the services cannot end them."""

import asyncio

import pytest

from parley.cli.supervision.startup import run_beside
from parley.cli.supervision.supervisor import StartFailed
from parley.clock import FakeClock


async def test_a_loop_that_fails_ends_nothing_and_is_run_again() -> None:
    clock, runs, done = FakeClock(), asyncio.Queue[None](), asyncio.Event()

    async def fail() -> None:
        runs.put_nowait(None)
        raise OSError("no descriptors are left")

    async def serve() -> None:
        for _ in range(3):
            await runs.get()
            clock.advance(await clock.until_sleeping())
        done.set()

    async with asyncio.timeout(5):
        await run_beside({"orphans.reap": fail}, serve(), clock)
    assert done.is_set()


async def test_a_start_that_failed_is_told_as_such() -> None:
    async def serve() -> None:
        raise StartFailed("chatd-1", 1, ())

    with pytest.raises(StartFailed):
        await run_beside({"orphans.reap": asyncio.Event().wait}, serve(), FakeClock())
