"""Runs inside of a sandbox and does to all other processes what one may do to one's own, for ever.

Gets the number of the signal that it sends; 0 for none, and limits and priorities instead.
"""

import ctypes
import os
import resource
import sys
from contextlib import suppress

NUMBER = int(sys.argv[1])
OTHERS_MAX = 64
libc = ctypes.CDLL(None, use_errno=True)


def others() -> list[int]:
    with suppress(OSError):
        seen = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        return [pid for pid in seen if pid != os.getpid()][-OTHERS_MAX:]
    return [os.getpid() + step for step in range(1, OTHERS_MAX)]


def hinder(pid: int) -> None:
    for kind, limit in (
        (resource.RLIMIT_NOFILE, (1, 1)),
        (resource.RLIMIT_NPROC, (1, 1)),
        (resource.RLIMIT_FSIZE, (1, 1)),
        (resource.RLIMIT_CPU, (1, 1)),
    ):
        with suppress(OSError, ValueError):
            resource.prlimit(pid, kind, limit)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    with suppress(OSError):
        os.sched_setaffinity(pid, {0})
    with suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    # PTRACE_SEIZE: whoever is traced stops when the other likes.
    libc.ptrace(0x4206, pid, 0, 0)


while True:
    if NUMBER:
        with suppress(OSError):
            os.kill(-1, NUMBER)
        continue
    with suppress(OSError):
        os.setpriority(os.PRIO_USER, 0, 19)
    for other in others():
        hinder(other)
