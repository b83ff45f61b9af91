"""Processes whose parents died: taken over by the supervisor, so that none is left behind.

Children of a crashed service become children of the nearest subreaper. As such the supervisor
buries those that end, and at its own end it ends the rest.
"""

import ctypes
import os
import sys
from contextlib import suppress

import psutil

from parley.cli.supervision.stale_processes import end
from parley.clock import Clock

PR_SET_CHILD_SUBREAPER = 36
LOOK_EVERY_S = 1.0
ENDING_S_MAX = 1.0


def become_subreaper() -> None:
    """Become the one to whom the kernel gives orphaned descendants."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def reap_orphans(clock: Clock) -> None:
    """Reap children that nobody else reaps, until this is cancelled."""
    dead_before: set[int] = set()
    while True:
        await clock.sleep(LOOK_EVERY_S)
        # Whoever started a child reaps it sooner; who is dead for two looks has nobody left.
        dead = _dead_children()
        for pid in dead & dead_before:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 (WNOHANG does not wait)
        dead_before = dead


def end_orphans(within_s: float) -> int:
    """End every descendant that is left and return how many there were."""
    # Half of it for ending by themselves, half for being killed.
    wait_s = min(ENDING_S_MAX, within_s / 2)
    return end(psutil.Process().children(recursive=True), wait_s=wait_s)


def _dead_children() -> set[int]:
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.add(child.pid)
    return found
