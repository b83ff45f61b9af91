"""A non-blocking buffer for the input of a process that does not read it yet."""

import asyncio
import os
from typing import Final

from toolrunner.primitives.errors import InputFull

WAITING_BYTES_MAX: Final = 2 * 1024 * 1024
#: Control-D: a terminal turns it into the end of input.
END_OF_TRANSMISSION: Final = b"\x04"


class ProcessInput:
    """The standard input of a process.

    Attributes:
        flushed: Set while nothing waits to be written.
        closed: Set when nothing can be written any more.
    """

    def __init__(self, fd: int, *, is_terminal: bool) -> None:
        self.flushed = asyncio.Event()
        self.flushed.set()
        self.closed = asyncio.Event()
        self.is_terminal = is_terminal
        self._fd = fd
        self._waiting = bytearray()
        self._is_ending = False
        os.set_blocking(fd, False)

    @property
    def is_open(self) -> bool:
        """Whether more can be written."""
        return self._fd >= 0 and not self._is_ending

    def write(self, data: bytes) -> None:
        """Write now, or as soon as the process reads.

        Raises:
            InputFull: The buffer is full, and nothing of this was written.
        """
        if len(self._waiting) + len(data) > WAITING_BYTES_MAX:
            raise InputFull(len(self._waiting))
        if not data:
            return
        self._waiting += data
        if self.flushed.is_set():
            self.flushed.clear()
            self._flush()

    def end(self) -> None:
        """Send the end of input after all earlier data."""
        if self.is_terminal:
            # A terminal stays open: at the beginning of a line this is the end of input.
            self.write(END_OF_TRANSMISSION)
            return
        self._is_ending = True
        if self.flushed.is_set():
            self.close()

    def close(self) -> None:
        """Close the input."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._waiting.clear()
        self.flushed.set()
        self.closed.set()

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                del self._waiting[: os.write(self._fd, self._waiting)]
        except BlockingIOError:
            loop.add_writer(self._fd, self._flush)
            return
        except OSError:
            # No process has the read end open.
            self.close()
            return
        loop.remove_writer(self._fd)
        self.flushed.set()
        if self._is_ending:
            self.close()
