"""File leases: the kernel reports whether another process opened a file for writing."""

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from toolrunner.filesystem.beneath import Entry
from toolrunner.fileworker.content.snapshot import reopened

#: A process that holds a file open for longer is not waited for.
TRIES_MAX: Final = 20
PAUSE_S: Final = 0.001


class Lease:
    """Reports whether a file was opened for writing since the lease was taken, if supported."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    @property
    def is_broken(self) -> bool:
        """Whether a process opens the file for writing; it blocks until the lease is released."""
        return self._fd is not None and fcntl.fcntl(self._fd, fcntl.F_GETLEASE) != fcntl.F_RDLCK


@contextmanager
def leased(entry: Entry) -> Iterator[Lease]:
    """Take a lease on a file in a context; without effect where leases are not supported.

    Some file systems do not support them, and the kernel refuses them for files of another user.
    """
    fd = None
    with suppress(OSError):
        with entry.found() as found:
            fd = reopened(found)
        # The kernel signals a lease break; this signal is ignored by default.
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
            # A process writes just now, and may close the file in a moment.
            select.select([], [], [], PAUSE_S)
        except OSError:
            return False
        else:
            return True
    return False
