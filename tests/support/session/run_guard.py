"""A small process beside each one that runs tests: when that is killed, it ends what is left.

Stacks, servers and spawners are started in sessions of their own, so a signal to the run does not
reach them, and after SIGKILL no test can stop what it started. The guard waits for the end of the
process that runs tests, however that ends, and then ends every process that mentions the run.

Run as `python -m support.session.run_guard PID START_TIME`, with the marks on standard input.
"""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import psutil

from support.session.leftover_processes import end_leftovers

TESTS = Path(__file__).resolve().parents[2]
#: Processes may start others while they are ended.
ROUNDS_MAX = 5


def start_guard(marks: tuple[str, ...]) -> None:
    """Start a guard of this process; it ends by itself soon after this process."""
    began_s = psutil.Process().create_time()
    # Not the marks as words: the guard must not take itself for a leftover.
    guard = subprocess.Popen(
        [sys.executable, "-m", "support.session.run_guard", str(os.getpid()), str(began_s)],
        env={"PYTHONPATH": str(TESTS), "PATH": os.defpath},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert guard.stdin is not None
    with guard.stdin:
        guard.stdin.write("\n".join(marks))
    # It outlives this process, which therefore never waits for it.
    guard.returncode = 0


def end_with(pids: Iterable[int]) -> None:
    """Have this process end when one of these processes does."""

    def watch() -> None:
        until_any_ends(pids)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def until_any_ends(pids: Iterable[int]) -> None:
    """Wait for the end of one of these processes."""
    poll = select.poll()
    descriptors = []
    try:
        for pid in pids:
            descriptors.append(os.pidfd_open(pid))
            poll.register(descriptors[-1], select.POLLIN)
        poll.poll()
    except ProcessLookupError:
        return
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def main(guarded: int, since_s: float, marks: tuple[str, ...]) -> None:
    """Wait for the end of the guarded process, and end what is left of it."""
    until_any_ends([guarded])
    for _ in range(ROUNDS_MAX):
        if not end_leftovers(marks, since_s):
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), tuple(sys.stdin.read().splitlines()))
