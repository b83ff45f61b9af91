"""What a process tells the Linux kernel about itself; elsewhere these do nothing."""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4


def end_with_parent(parent_pid: int) -> bool:
    """Have the kernel send SIGTERM when the parent ends; return whether it is still there.

    The signal is armed before the parent is looked for, so no moment is left in which it can go
    unnoticed. The kernel means the thread that started this process, so that one has to stay.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent_pid


def forbid_inspection() -> None:
    """Have the kernel write no core dump, and let no other process of this user read the memory."""
    _prctl(PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
