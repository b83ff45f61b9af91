"""The log of a process's output on disk: two segments; the older is dropped when both are full.

The beginning of the first segment is kept, unless the log is small: the first output often explains
the exit, and it should be available after a restart of the service too.

Processes can remove these files. While a log is written its files stay open, so that this has no
effect; afterwards removed files are gone, and are not in the spans.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

OPEN: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
SPLICE_F_NONBLOCK: Final = 2
LOG_BYTES: Final = 16 * 1024 * 1024
SUFFIX: Final = ".log"
BEGINNING_BYTES: Final = 16 * 1024
#: A log with smaller segments does not keep the beginning.
SMALL_BYTES: Final = 4 * BEGINNING_BYTES


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with the output from `start` to `end`; its name contains the start."""

    path: Path
    start: int
    end: int
    fd: int = -1  # -1 once it is closed.


class OutputLog:
    """Writes a log, and keeps its newest part within the limit."""

    def __init__(self, directory: Path, name: str, bytes_max: int) -> None:
        self._directory = directory
        self._name = name
        self._segment_bytes = max(1, bytes_max // 2)
        self._past: list[Segment] = []
        self._path = directory
        self._start = 0
        self._end = 0
        self._fd = -1

    @classmethod
    def reopened(cls, directory: Path, name: str, bytes_max: int) -> "OutputLog":
        """Continue the log of a process of an earlier run of the service.

        Raises:
            OSError: It cannot be written.
        """
        log = cls(directory, name, bytes_max)
        segments = [replace(each, fd=os.open(each.path, OPEN)) for each in _found(directory, name)]
        if segments:
            last = segments.pop()
            log._past = segments
            log._path, log._start, log._end, log._fd = last.path, last.start, last.end, last.fd
        return log

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The ranges in the log."""
        return _spans(self._segments)

    @property
    def place(self) -> tuple[str, int]:
        """The file where the newest contiguous part begins, and its cursor; "" and 0 for none."""
        segments = self._segments
        spans = _spans(segments)
        if not spans:
            return "", 0
        start = spans[-1][0]
        return next((each.path.name for each in segments if each.start == start), ""), start

    def append(self, data: bytes) -> None:
        """Write output.

        Raises:
            OSError: The disk write failed; write no more.
        """
        self._make_room()
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, self._end - self._start)
            self._end += written
            view = view[written:]

    def move(self, pipe_fd: int, bytes_max: int) -> int:
        """Splice output from a pipe to the log; return the number of bytes, 0 at EOF.

        The kernel does it: bytes that left the pipe are in the log, even if this process is killed.

        Raises:
            BlockingIOError: There is nothing yet.
            OSError: It is not a pipe, or the disk write failed; the bytes are still in the pipe
                then.
        """
        self._make_room()
        offset = self._end - self._start
        moved = os.splice(pipe_fd, self._fd, bytes_max, offset_dst=offset, flags=SPLICE_F_NONBLOCK)
        self._end += moved
        return moved

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two cursors inside a span."""
        return _read(self._segments, start, end)

    def close(self) -> None:
        """Close the files; the log can still be read."""
        for fd in (self._fd, *(each.fd for each in self._past)):
            if fd >= 0:
                os.close(fd)
        self._fd = -1
        self._past = [replace(each, fd=-1) for each in self._past]

    @property
    def _segments(self) -> list[Segment]:
        if self._path == self._directory:
            return self._past
        return [*self._past, Segment(self._path, self._start, self._end, self._fd)]

    def _make_room(self) -> None:
        if self._fd < 0 or self._end - self._start >= self._segment_bytes:
            self._roll()

    def _roll(self) -> None:
        path = self._directory / f"{self._name}.{self._end}{SUFFIX}"
        fd = os.open(path, OPEN | os.O_CREAT | os.O_EXCL, 0o640)
        self._past = self._segments
        self._path, self._start, self._fd = path, self._end, fd
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Keep one full segment besides the current one, and the beginning."""
        dropped, self._past = self._past[:-1], self._past[-1:]
        for segment in dropped:
            if segment.start == 0 and self._segment_bytes >= SMALL_BYTES:
                end = min(segment.end, BEGINNING_BYTES)
                os.ftruncate(segment.fd, end)
                self._past.insert(0, replace(segment, end=end))
            else:
                segment.path.unlink(missing_ok=True)
                os.close(segment.fd)


class FinishedLog:
    """The log of a process that has ended."""

    def __init__(self, directory: Path, name: str) -> None:
        self._found = _found(directory, name)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The ranges in the log."""
        return _spans(self._found)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two cursors inside a span."""
        return _read(self._found, start, end)


def remove_logs(directory: Path, names: Collection[str]) -> None:
    """Remove logs from the disk, with one scan of the directory."""
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name.removesuffix(SUFFIX).rpartition(".")[0]
            if name in names and entry.name.endswith(SUFFIX):
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)


def _found(directory: Path, name: str) -> list[Segment]:
    found = []
    for path in directory.glob(f"{name}.*{SUFFIX}"):
        number = path.name.removesuffix(SUFFIX).rpartition(".")[2]
        with suppress(FileNotFoundError):
            if number.isdecimal():
                found.append(Segment(path, int(number), int(number) + path.stat().st_size))
    return sorted(found, key=lambda segment: segment.start)


def _spans(segments: list[Segment]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for segment in segments:
        if segment.fd < 0 and not segment.path.exists():
            continue
        if joined and joined[-1][1] == segment.start:
            joined[-1] = (joined[-1][0], segment.end)
        elif segment.start < segment.end or not joined:
            joined.append((segment.start, segment.end))
    return tuple(span for span in joined if span[0] < span[1])


def _read(segments: list[Segment], start: int, end: int) -> bytes:
    pieces = []
    for segment in segments:
        first, last = max(start, segment.start), min(end, segment.end)
        if first < last:
            pieces.append(_read_from(segment, first - segment.start, last - first))
    return b"".join(pieces)


def _read_from(segment: Segment, offset: int, size: int) -> bytes:
    if segment.fd >= 0:
        return os.pread(segment.fd, size, offset)
    with suppress(FileNotFoundError):
        fd = os.open(segment.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)
    return b""
