"""Leases on files: the kernel tells whether anybody began to write into one meanwhile."""

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from toolrunner.filesystem.beneath import Place
from toolrunner.fileworker.content.snapshot import reopened

#: Whoever holds a file open for longer keeps it open for good, and is not waited for.
TRIES_MAX: Final = 20
PAUSE_S: Final = 0.001


class Lease:
    """Knows whether a file was opened for writing since it was taken, if the kernel tells."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    @property
    def is_broken(self) -> bool:
        """Whether somebody opens the file for writing; they wait until the lease is given up."""
        return self._fd is not None and fcntl.fcntl(self._fd, fcntl.F_GETLEASE) != fcntl.F_RDLCK


@contextmanager
def leased(place: Place) -> Iterator[Lease]:
    """Have a lease on the file at a place; one that tells nothing if none is to be had.

    File systems of some kinds give none, nor does the kernel for a file of another user.
    """
    fd = None
    with suppress(OSError):
        with place.found() as found:
            fd = reopened(found)
        # The kernel calls when somebody comes; this signal is ignored by default.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
    try:
        yield Lease(fd if fd is not None and _is_taken(fd) else None)
    finally:
        if fd is not None:
            os.close(fd)


def _is_taken(fd: int) -> bool:
    for _ in range(TRIES_MAX):
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            # Somebody writes just now, and may be through in a moment.
            select.select([], [], [], PAUSE_S)
        except OSError:
            return False
        else:
            return True
    return False
