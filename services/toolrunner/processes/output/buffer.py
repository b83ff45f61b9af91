"""What is kept of a running process's output: the beginning and the end in memory, more on disk."""

import logging
import os
import select
from typing import Final

from toolrunner.processes.output.excerpt import complete_bytes
from toolrunner.processes.output.log import OutputLog

HEAD_BYTES: Final = 16 * 1024
TAIL_BYTES: Final = 32 * 1024
CHUNK_BYTES: Final = 64 * 1024

logger = logging.getLogger(__name__)


class KeptOutput:
    """Output as it comes; memory stays bounded and a full disk costs the middle only.

    Attributes:
        total_bytes: All output so far; also the cursor of what comes next.
    """

    def __init__(self, log: OutputLog) -> None:
        self.total_bytes = 0
        self._log = log
        self._is_logging = True
        self._is_movable = True
        self._head = bytearray()
        self._tail = bytearray()

    @classmethod
    def resumed(cls, log: OutputLog) -> "KeptOutput":
        """Go on with what an earlier run of the service wrote to the log."""
        output = cls(log)
        spans = log.spans
        if spans:
            start, output.total_bytes = spans[-1]
            output._tail += log.read(max(start, output.total_bytes - TAIL_BYTES), spans[-1][1])
            if spans[0][0] == 0:
                output._head += log.read(0, min(HEAD_BYTES, spans[0][1]))
        return output

    @property
    def log_place(self) -> tuple[str, int]:
        """The file of the log where its newest part begins, and the cursor; "" and 0 for none.

        From that cursor on the log has everything.
        """
        return self._log.place

    @property
    def complete_bytes(self) -> int:
        """The output without a last character that has only begun."""
        last = bytes(self._tail[-4:])
        return self.total_bytes - len(last) + complete_bytes(last)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """What can be read again."""
        if len(self._tail) == self.total_bytes:
            # Most print so little that all of it is here, and nobody has to look at the disk.
            return ((0, self.total_bytes),)
        tail = (self.total_bytes - len(self._tail), self.total_bytes)
        joined: list[tuple[int, int]] = []
        for start, end in sorted(((0, len(self._head)), *self._log.spans, tail)):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return tuple(joined)

    def take(self, fd: int) -> bool:
        """Keep what there is to read; return whether more may come.

        Raises:
            BlockingIOError: There is nothing yet.
        """
        if self.total_bytes == 0 and _is_at_end(fd):
            # Who prints nothing needs no log.
            return False
        if self._is_logging and self._is_movable:
            try:
                moved = self._log.move(fd, CHUNK_BYTES)
            except BlockingIOError:
                raise
            except OSError:
                # A terminal, a file system that cannot, or a full disk: read it, then see.
                self._is_movable = False
            else:
                self._remember_moved(moved)
                return moved > 0
        data = _read(fd)
        self.append(data)
        return bool(data)

    def append(self, data: bytes) -> None:
        """Keep a piece of output."""
        self._remember(data)
        if not self._is_logging or not data:
            return
        try:
            self._log.append(data)
        except OSError as error:
            self._is_logging = False
            logger.warning("output is not logged any more: %s", error.strerror)

    def _remember_moved(self, moved: int) -> None:
        end = self.total_bytes + moved
        if moved <= TAIL_BYTES or len(self._head) < HEAD_BYTES:
            self._remember(self._log.read(self.total_bytes, end))
            return
        # Of a flood only the end is looked at again.
        self._tail[:] = self._log.read(end - TAIL_BYTES, end)
        self.total_bytes = end

    def _remember(self, data: bytes) -> None:
        if len(self._head) == self.total_bytes:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        self.total_bytes += len(data)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two cursors inside one span."""
        tail_start = self.total_bytes - len(self._tail)
        if start >= tail_start:
            return bytes(self._tail[start - tail_start : end - tail_start])
        if end <= len(self._head):
            return bytes(self._head[start:end])
        in_head = bytes(self._head[start:]) if start < len(self._head) else b""
        middle_start, middle_end = start + len(in_head), min(end, tail_start)
        in_log = self._log.read(middle_start, middle_end) if middle_start < middle_end else b""
        # A log that gave up early leaves the rest to the tail.
        after = max(middle_start + len(in_log), tail_start)
        return in_head + in_log + bytes(self._tail[after - tail_start : max(0, end - tail_start)])

    def close(self) -> None:
        """Keep no more; what is there can still be read."""
        self._log.close()


def _is_at_end(fd: int) -> bool:
    """Tell whether there is nothing to read and nobody left who could write."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll.poll(0) == [(fd, select.POLLHUP)]


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        raise
    except OSError:
        # A terminal that nobody has open any more says so by an error.
        return b""
