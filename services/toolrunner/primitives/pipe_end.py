"""The end of a pipe that a transport reads or writes, and closes once."""

import asyncio
import os
from typing import Any


class PipeEnd:
    """A descriptor for `connect_read_pipe` and `connect_write_pipe`; the transport owns it.

    uvloop closes the descriptor of a transport and then the file object that it was given. By then
    a thread may have opened something else that got the same number, which would be closed in its
    place. So the object closes nothing there. The transports of asyncio close the object alone.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._is_closed_by_loop = not isinstance(loop, asyncio.SelectorEventLoop)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def close(self) -> None:
        """Close the descriptor, unless the event loop does."""
        if not self._is_closed_by_loop and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


async def read_pipe(protocol: asyncio.BaseProtocol, fd: int) -> asyncio.ReadTransport:
    """Have a protocol read a pipe; the transport closes the descriptor."""
    loop = asyncio.get_running_loop()
    end: Any = PipeEnd(fd, loop)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, end)
    return transport


async def write_pipe(protocol: asyncio.BaseProtocol, fd: int) -> asyncio.WriteTransport:
    """Have a protocol write a pipe; the transport closes the descriptor."""
    loop = asyncio.get_running_loop()
    end: Any = PipeEnd(fd, loop)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, end)
    return transport
