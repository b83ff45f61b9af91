"""Waits for an event with a timeout of a clock."""

import asyncio

from parley.clock import Clock


async def is_set_within(event: asyncio.Event, limit_s: float, clock: Clock) -> bool:
    """Wait for `event` for at most `limit_s` of `clock`; return whether it is set."""
    if event.is_set():
        return True
    async with asyncio.TaskGroup() as tasks:
        racers = (
            tasks.create_task(event.wait()),
            tasks.create_task(clock.sleep(limit_s)),
        )
        await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        for racer in racers:
            racer.cancel()
    return event.is_set()
