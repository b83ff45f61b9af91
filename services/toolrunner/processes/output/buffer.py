"""The buffered output of a running process: head and tail in memory, more on disk."""

import logging
import os
import select
from collections.abc import Iterable
from typing import Final

from toolrunner.egress.domain.secret_mask import SECRET_BYTES_MIN, Mask, spellings
from toolrunner.processes.output.excerpt import complete_bytes
from toolrunner.processes.output.log import OutputLog

HEAD_BYTES: Final = 16 * 1024
TAIL_BYTES: Final = 32 * 1024
CHUNK_BYTES: Final = 64 * 1024

logger = logging.getLogger(__name__)


class KeptOutput:
    """Output of a process; memory is bounded, and a full disk loses the middle only.

    Attributes:
        total_bytes: All output so far; also the cursor of the next output.
    """

    def __init__(self, log: OutputLog) -> None:
        self.total_bytes = 0
        self._log = log
        self._is_logging = True
        self._is_movable = True
        self._mask: Mask | None = None
        self._hidden: set[bytes] = set()
        self._head = bytearray()
        self._tail = bytearray()

    @classmethod
    def resumed(cls, log: OutputLog) -> "KeptOutput":
        """Continue with the log that an earlier run of the service wrote."""
        output = cls(log)
        spans = log.spans
        if spans:
            start, output.total_bytes = spans[-1]
            output._tail += log.read(max(start, output.total_bytes - TAIL_BYTES), spans[-1][1])
            if spans[0][0] == 0:
                output._head += log.read(0, min(HEAD_BYTES, spans[0][1]))
        return output

    @property
    def is_holding(self) -> bool:
        """Whether the last bytes wait for more, because a secret may begin there."""
        return self._mask is not None and self._mask.is_holding

    def hide(self, secrets: Iterable[str]) -> None:
        """Replace secrets by asterisks in all output that follows, besides those of before."""
        written = {text for each in secrets for text in _written(each)}
        if not written:
            return
        self._hidden |= written
        before, self._mask = self._mask, Mask(self._hidden)
        # What is moved to the log is seen only afterwards.
        self._is_movable = False
        if before is not None:
            self.append(self._mask.pass_on(before.finish()))

    def release(self) -> None:
        """Store the bytes that wait for more."""
        if self._mask is not None:
            self.append(self._mask.finish())

    @property
    def log_place(self) -> tuple[str, int]:
        """The log file with its newest contiguous part, and its first cursor; "" and 0 for none.

        From that cursor on the log is complete.
        """
        return self._log.place

    @property
    def complete_bytes(self) -> int:
        """The output size without an incomplete character at the end."""
        last = bytes(self._tail[-4:])
        return self.total_bytes - len(last) + complete_bytes(last)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The ranges that can be read again."""
        if len(self._tail) == self.total_bytes:
            # Most outputs are so small that all is in memory, and the disk is not read.
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
        """Read available output; return whether more may follow.

        Raises:
            BlockingIOError: There is nothing yet.
        """
        if self.total_bytes == 0 and _is_at_end(fd):
            # A process without output needs no log.
            return False
        if self._is_logging and self._is_movable:
            try:
                moved = self._log.move(fd, CHUNK_BYTES)
            except BlockingIOError:
                raise
            except OSError:
                # A terminal, a file system without splice, or a full disk: fall back to reading.
                self._is_movable = False
            else:
                self._remember_moved(moved)
                return moved > 0
        data = _read(fd)
        if data:
            self.append(data if self._mask is None else self._mask.pass_on(data))
        else:
            self.release()
        return bool(data)

    def append(self, data: bytes) -> None:
        """Store a piece of output."""
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
        # Of a large output only the end is read back.
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
        # If the log stopped early, the tail provides the rest.
        after = max(middle_start + len(in_log), tail_start)
        return in_head + in_log + bytes(self._tail[after - tail_start : max(0, end - tail_start)])

    def close(self) -> None:
        """Store no more; the stored output can still be read."""
        self.release()
        self._log.close()


def _written(secret: str) -> set[bytes]:
    """Return a secret in the ways in which programs print it.

    White space around it, such as the line end of a file from which it was stored, is often printed
    without it or differently, and is no part of what is masked.
    """
    bare = {each for each in _encoded(secret.strip()) if len(each) >= SECRET_BYTES_MIN}
    return bare | {each for each in _encoded(secret) if not any(part in each for part in bare)}


def _encoded(text: str) -> set[bytes]:
    # A terminal writes line ends in its own way.
    return spellings(text.encode()) | spellings(text.replace("\n", "\r\n").encode())


def _is_at_end(fd: int) -> bool:
    """Return whether there is nothing to read and no writer left."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll.poll(0) == [(fd, select.POLLHUP)]


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        raise
    except OSError:
        # A terminal without other open descriptors returns EIO.
        return b""
