"""Orphaned processes: adopted by the supervisor, so that none is left running.

Children of a crashed service become children of the nearest subreaper. As such the supervisor reaps
those that end, and at its own end it ends the rest.
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
    """Become the subreaper to which the kernel reparents orphaned descendants."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def reap_orphans(clock: Clock) -> None:
    """Reap children that no other code reaps, until this is cancelled."""
    dead_before: set[int] = set()
    while True:
        await clock.sleep(LOOK_EVERY_S)
        # A child with a live parent task is reaped sooner; a zombie seen in two scans is an orphan.
        dead = _dead_children()
        for pid in dead & dead_before:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 (WNOHANG does not wait)
        dead_before = dead


def end_orphans(within_s: float) -> int:
    """End all remaining descendants and return their number."""
    # Half of the time for SIGTERM, half for SIGKILL.
    wait_s = min(ENDING_S_MAX, within_s / 2)
    return end(psutil.Process().children(recursive=True), wait_s=wait_s)


def _dead_children() -> set[int]:
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.add(child.pid)
    return found
