"""The limit of open files: raised for this process, restored for its children, and monitored.

A login shell gives each process 1,024 open files, and every connection of a client is one. The
kernel lets a process raise its own limit up to a hard limit. Other programs may fail with a high
limit, so programs that are started for users get the limit that this process was started with.
"""

import asyncio
import errno
import logging
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

# Kernels rarely allow more than this, and none of the services uses it.
LIMIT_MAX: Final = 1_048_576
#: Open files other than connections of clients: the database, other services, logs, and connections
#: that are being refused.
RESERVE: Final = 320
LOOK_S: Final = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The limit of open files of a process.

    Attributes:
        limit: The current limit of this process.
        limit_at_start: The limit that it was started with.
    """

    limit: int
    limit_at_start: int

    @classmethod
    def raised(cls) -> Self:
        """Raise the limit of this process as far as the kernel allows and return it."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
        before = LIMIT_MAX if soft == resource.RLIM_INFINITY else soft
        if before < highest:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        return cls(max(before, highest), before)

    @property
    def connections_max(self) -> int:
        """The number of client connections that leaves enough files for everything else."""
        return self.limit - min(RESERVE, self.limit // 2)

    @contextmanager
    def as_at_start(self) -> Iterator[None]:
        """Start child processes inside the context with the limit this process was started with."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(self.limit_at_start, soft), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class _Watch:
    """Calls `tell` once when no file can be opened, and once when files can be opened again."""

    def __init__(self, look_s: float, tell: Callable[[bool], None]) -> None:
        self._look_s = look_s
        self._tell = tell
        self._is_short = False
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None

    def look(self) -> None:
        is_short = not _can_open()
        if is_short != self._is_short:
            self._is_short = is_short
            self._tell(is_short)
        self._next = self._loop.call_later(self._look_s, self.look)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()


@contextmanager
def watched_open_files(
    look_s: float = LOOK_S, tell: Callable[[bool], None] | None = None
) -> Iterator[None]:
    """Log when this process has reached its limit of open files; event loops do not log it.

    Args:
        look_s: The interval between two checks.
        tell: Is called, instead of logging, on each change: whether no file can be opened.
    """
    watch = _Watch(look_s, tell or _log_shortage)
    watch.look()
    try:
        yield
    finally:
        watch.stop()


def _log_shortage(is_short: bool) -> None:
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if is_short:
        logger.error(
            "this process has %d files open and may not open more (EMFILE), so it takes no new "
            "connection; raise its hard limit, which is %d (ulimit -Hn, or LimitNOFILE of systemd)",
            limit,
            hard,
        )
    else:
        logger.warning("this process can open files again")


def _can_open() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
