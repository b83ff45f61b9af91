"""The log of a process's output on disk: two segments, the older goes when both are full."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOG_BYTES: Final = 16 * 1024 * 1024
SUFFIX: Final = ".log"


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with the output from `start` on, which its name says."""

    path: Path
    start: int


class OutputLog:
    """Writes a log, and keeps the newest part of it within the limit."""

    def __init__(self, directory: Path, name: str, bytes_max: int) -> None:
        self._directory = directory
        self._name = name
        self._segment_bytes = max(1, bytes_max // 2)
        self._segments: list[Segment] = []
        self._fd = -1
        self._end = 0

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """What the log has."""
        return ((self._segments[0].start, self._end),) if self._segments else ()

    def append(self, data: bytes) -> None:
        """Write output.

        Raises:
            OSError: The disk does not take it; write no more.
        """
        if self._fd < 0 or self._end - self._segments[-1].start >= self._segment_bytes:
            self._roll()
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            self._end += written
            view = view[written:]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two cursors inside the span."""
        return _read(self._segments, start, end)

    def close(self) -> None:
        """Write no more; what is there can still be read."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Remove the log."""
        self.close()
        while self._segments:
            self._segments.pop().path.unlink(missing_ok=True)

    def _roll(self) -> None:
        self.close()
        path = self._directory / f"{self._name}.{self._end}{SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self._segments.append(Segment(path, self._end))
        while len(self._segments) > 2:
            self._segments.pop(0).path.unlink(missing_ok=True)


class FinishedLog:
    """The log of a process that an earlier run of the service had."""

    def __init__(self, directory: Path, name: str) -> None:
        found = ((path, _start_of(path)) for path in directory.glob(f"{name}.*{SUFFIX}"))
        self._segments = sorted(
            (Segment(path, start) for path, start in found if start is not None),
            key=lambda segment: segment.start,
        )
        self._end = 0
        with suppress(FileNotFoundError):
            self._end = sum(
                segment.start + segment.path.stat().st_size for segment in self._segments[-1:]
            )

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """What the log has."""
        start = self._segments[0].start if self._segments else 0
        return ((start, self._end),) if start < self._end else ()

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two cursors inside the span."""
        return _read(self._segments, start, end)


def _start_of(path: Path) -> int | None:
    number = path.name.removesuffix(SUFFIX).rpartition(".")[2]
    return int(number) if number.isdecimal() else None


def _read(segments: list[Segment], start: int, end: int) -> bytes:
    pieces = []
    for at, segment in enumerate(segments):
        segment_end = segments[at + 1].start if at + 1 < len(segments) else end
        first, last = max(start, segment.start), min(end, segment_end)
        if first < last:
            with segment.path.open("rb") as file:
                file.seek(first - segment.start)
                pieces.append(file.read(last - first))
    return b"".join(pieces)
