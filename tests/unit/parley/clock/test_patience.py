"""Items that come in time, late, or never."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from parley.clock import FakeClock, patient


async def these(*items: int | Exception) -> AsyncIterator[int]:
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


async def test_items_pass_until_they_end() -> None:
    clock = FakeClock()
    assert [item async for item in patient(these(1, 2), silence_s=5, clock=clock)] == [1, 2]


async def test_an_error_of_the_items_is_theirs() -> None:
    items = patient(these(1, KeyError()), silence_s=5, clock=FakeClock())
    assert await anext(items) == 1
    with pytest.raises(KeyError):
        await anext(items)


async def test_whoever_falls_silent_is_told_of() -> None:
    clock = FakeClock()

    async def silent() -> AsyncIterator[int]:
        await asyncio.Event().wait()
        yield 1

    async def take() -> None:
        with pytest.raises(TimeoutError):
            await anext(patient(silent(), silence_s=5, clock=clock))

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(take())
        assert await clock.until_sleeping() == 5
        clock.advance(5)
