"""Processes started by a spawner directly, without a service around it."""

import asyncio
import os

from toolrunner.primitives.domain import Exit
from toolrunner.spawner.client.spawner import Launch, SpawnerProcess

WITHIN_S = 60.0


async def printed(spawner: SpawnerProcess, launch: Launch) -> tuple[str, Exit]:
    """Return what a process printed, and how it ended."""
    ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(WITHIN_S):
        launched = await spawner.start(launch, lambda _, exit: ended.set_result(exit))
        with os.fdopen(launched.output_fd, "rb") as output:
            data = await asyncio.to_thread(output.read)
        exit = await ended
    await spawner.forget(launch.process_id)
    return data.decode(), exit
