"""Processes that outlived their supervisor or their parent: finds, adopts and ends them."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

import psutil

from parley.cli.supervision.process_table import ProcessIdentity, ProcessTable
from parley.clock import Clock

#: The resolution of start times, which the kernel counts in clock ticks.
START_TOLERANCE_S = 0.02
ENDING_S_MAX = 5.0


def running(identity: ProcessIdentity | None) -> psutil.Process | None:
    """Return the process with this identity, unless it has ended."""
    if identity is None:
        return None
    try:
        process = psutil.Process(identity.pid)
        is_same = abs(process.create_time() - identity.started_at) <= START_TOLERANCE_S
        return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def leftovers(table: ProcessTable) -> tuple[psutil.Process, ...]:
    """Return the processes of `table` that still run, last started first."""
    found = (running(record.identity) for record in reversed(table.processes))
    return tuple(process for process in found if process is not None)


def end(processes: Iterable[psutil.Process], *, wait_s: float = ENDING_S_MAX) -> int:
    """End `processes` and their descendants; return their number."""
    ending = tuple(processes)
    everyone = {member for process in ending for member in (process, *_descendants(process))}
    for process in ending:
        with suppress(psutil.NoSuchProcess):
            # On SIGTERM PostgreSQL waits for its clients, on SIGINT it disconnects them.
            is_postgres = process.name() == "postgres"
            process.send_signal(signal.SIGINT if is_postgres else signal.SIGTERM)
    _, stubborn = psutil.wait_procs(everyone, timeout=wait_s)
    for process in stubborn:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            _kill_group(process)
    psutil.wait_procs(stubborn, timeout=wait_s)
    return len(ending)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []


def _kill_group(process: psutil.Process) -> None:
    if os.getpgid(process.pid) == process.pid:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


PR_SET_CHILD_SUBREAPER = 36
LOOK_EVERY_S = 1.0
ORPHANS_ENDING_S_MAX = 1.0


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
    wait_s = min(ORPHANS_ENDING_S_MAX, within_s / 2)
    return end(psutil.Process().children(recursive=True), wait_s=wait_s)


def _dead_children() -> set[int]:
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.add(child.pid)
    return found
