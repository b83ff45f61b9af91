"""The lock of a home: at most one supervisor runs in it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from parley.cli.errors import CliError
from parley.cli.home.layout import Home


class AlreadyLocked(CliError):
    """Another supervisor runs in this home."""

    def __init__(self, home: Home, pid: str, how_to_stop: str) -> None:
        super().__init__(
            f"Parley already runs in {home.root} (process {pid or 'unknown'}): "
            f"stop it with `{how_to_stop}`, or use another --home DIR"
        )
        self.pid = pid


@contextmanager
def locked(home: Home, *, how_to_stop: str) -> Iterator[None]:
    """Hold the lock; the kernel releases it whenever this process ends.

    Raises:
        AlreadyLocked: another process holds it.
    """
    descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            raise AlreadyLocked(home, pid, how_to_stop) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
