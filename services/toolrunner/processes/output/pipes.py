"""Reading of the output of all processes, in small batches per event loop iteration.

Theory: an event loop runs all ready callbacks before any of them runs again. With hundreds of
processes that print continuously such an iteration takes a tenth of a second and more, and other
calls need several iterations each. So all outputs are in one epoll set, which is one descriptor for
the loop: in each iteration a few are read, and the kernel returns those last the next time.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final

#: So many outputs are read in one iteration; that takes a millisecond or two.
READ_TOGETHER: Final = 16


class Pipes:
    """Calls the readers of readable outputs, a few at a time."""

    def __init__(self) -> None:
        self._readers: dict[int, Callable[[], None]] = {}
        self._epoll: select.epoll | None = None

    def add(self, fd: int, read: Callable[[], None]) -> None:
        """Register `read`, called whenever the descriptor is readable or at EOF."""
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._read_some)
        self._readers[fd] = read
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Unregister a descriptor, which must still be open."""
        if self._readers.pop(fd, None) is not None and self._epoll is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Unregister all descriptors."""
        self._readers.clear()
        if self._epoll is not None:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _read_some(self) -> None:
        assert self._epoll is not None
        for fd, _ in self._epoll.poll(0, READ_TOGETHER):
            # An earlier callback may have removed this one.
            if (read := self._readers.get(fd)) is not None:
                read()
