"""Reading what all processes print: a little of it in each turn of the event loop.

Theory: an event loop gives everybody who is ready a turn before anybody has a second one. With
hundreds of processes that print without end such a round takes a tenth of a second and more, and
the calls of others need several rounds each. So all outputs are in one set of the kernel's, which
is one descriptor for the loop: in each round a few are read, and those come last the next time.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final

#: So many outputs are read before everybody else has a turn; it takes a millisecond or two.
READ_TOGETHER: Final = 16


class Pipes:
    """Calls whoever has something to read, some of them at a time."""

    def __init__(self) -> None:
        self._readers: dict[int, Callable[[], None]] = {}
        self._epoll: select.epoll | None = None

    def add(self, fd: int, read: Callable[[], None]) -> None:
        """Have `read` called whenever there is something to read, or nobody left to write."""
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._read_some)
        self._readers[fd] = read
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Call nobody for a descriptor any more; it has to be open still."""
        if self._readers.pop(fd, None) is not None and self._epoll is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Call nobody any more."""
        self._readers.clear()
        if self._epoll is not None:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _read_some(self) -> None:
        assert self._epoll is not None
        for fd, _ in self._epoll.poll(0, READ_TOGETHER):
            # Whoever was called before may have had this one removed.
            if (read := self._readers.get(fd)) is not None:
                read()
