"""Settings of the process in the Linux kernel; on other systems these do nothing."""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4


def end_with_parent(parent_pid: int) -> bool:
    """Set SIGTERM as the parent death signal; return whether the parent is still alive.

    The signal is set before the parent is checked, so that its death cannot be missed. The kernel
    sends it when the thread that started this process ends, so that thread has to stay.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent_pid


def forbid_inspection() -> None:
    """Disable core dumps, and reading of this process's memory by others of the same user."""
    _prctl(PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
