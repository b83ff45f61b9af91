"""Attacks on a jail that take several steps; each returns what came of them as plain values.

Only the standard library and toolrunner: tests also run this as an ordinary user.
"""

import asyncio
import json
import subprocess
import sys

from support.toolrunner import attacks
from support.toolrunner.jail import PYTHON, Jail
from toolrunner.sandbox import Level, Profile
from toolrunner.spawner.client.spawner import LaunchFailed

#: More than a start may take, and less than a test waits.
WITHIN_S = 60.0
STARTS = 8
#: More than anybody gets.
TAKEN_MAX = 200_000
WANTED = 4


async def meddled(jail: Jail, number: int) -> dict[str, object]:
    """Start things in a workspace where something meddles with all processes that it sees.

    Returns what became of the starts there, what a neighbour printed, and what the workspace
    printed once everything in it was ended.
    """
    await jail.begin(PYTHON, "-I", "-S", "-c", attacks.MEDDLING, str(number))
    # Of each profile, because something is built for the first of each.
    profiles = [Profile.WORKSPACE_WRITE, Profile.FULL]
    if jail.level >= Level.LANDLOCK:
        profiles.append(Profile.READ_ONLY)
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        starts = [
            tasks.create_task(started(jail, profiles[index % len(profiles)]))
            for index in range(STARTS)
        ]
        neighbour = tasks.create_task(jail.shell("echo fine", workspace="w2"))
    await jail.stop()
    after = await jail.shell("echo fine")
    return {
        "starts": sorted({start.result() for start in starts}),
        "neighbour": neighbour.result().text,
        "after": after.text,
    }


async def started(jail: Jail, profile: Profile) -> str:
    """Start something that goes on; return how that went."""
    try:
        await jail.begin("sleep", "600", profile=profile)
    except LaunchFailed as error:
        return error.stage
    return "started"


async def exhausted(jail: Jail) -> dict[str, dict[str, int]]:
    """Take all that a workspace gets of what the kernel counts for a user.

    Returns how many of each it got, and how many of a few a neighbour and the service get then.
    """
    hold = (PYTHON, "-I", "-S", "-c", attacks.EXHAUSTING, str(TAKEN_MAX), "hold")
    await jail.begin(*hold)
    async with asyncio.timeout(WITHIN_S):
        while (took := await jail.shell("cat took")).exit.exit_code != 0:
            pass
    neighbour = await jail.python(attacks.EXHAUSTING, str(WANTED), workspace="w2")
    service = await asyncio.to_thread(
        subprocess.run,
        (sys.executable, "-I", "-S", "-c", attacks.EXHAUSTING, str(WANTED)),
        capture_output=True,
        check=True,
    )
    return {
        "attacker": json.loads(took.text),
        "neighbour": json.loads(neighbour.text),
        "service": json.loads(service.stdout),
    }
