"""Excerpts of output as text within a size budget; no I/O except by the source.

Theory: a budget is split into a head and a tail with a mark between them, the mark included. The
cuts are made in the bytes, so that omitted bytes can be counted; then the bytes are cleaned (escape
sequences, long lines, invalid UTF-8). Cleaning can make text longer, because an invalid byte
becomes three, so a piece that does not fit is cut again.
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol

MAX_BYTES: Final = 32 * 1024
LINE_BYTES: Final = 2048
COUNT_CHUNK_BYTES: Final = 1024 * 1024
REPLACEMENT_BYTES: Final = 3

_ESCAPES: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[@-Z\\^_])"
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The size limits of an excerpt."""

    max_bytes: int = MAX_BYTES
    head_bytes: int | None = None  # None for three eighths.
    line_bytes: int | None = None  # None to clip long lines only if the text does not fit.
    keeps_escapes: bool = False


class Source(Protocol):
    """Output that can be read again, where it is still stored."""

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The readable ranges of cursors, in order, not adjacent."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two cursors inside one span."""
        ...


@dataclass(frozen=True, slots=True)
class Truncation:
    """The omitted parts of an output; the four kinds of bytes add up to the original."""

    original_bytes: int
    retained_bytes: int
    omitted_bytes: int
    omitted_lines: int
    clipped_lines: int
    clipped_bytes: int
    expired_bytes: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text, and the cursor of the next read."""

    text: str
    next_cursor: int
    truncation: Truncation | None


@dataclass(frozen=True, slots=True)
class _Piece:
    raw_bytes: int
    text: str
    clipped_lines: int
    clipped_bytes: int


EMPTY_PIECE: Final = _Piece(0, "", 0, 0)


def excerpt(source: Source, start: int, end: int, budget: Budget) -> Excerpt:
    """Return the output between two cursors; head and tail if it exceeds the budget."""
    readable = _within(source.spans, start, end)
    if readable == ((start, end),) and end - start <= budget.max_bytes:
        data = source.read(start, end)
        for line_bytes in dict.fromkeys((budget.line_bytes or len(data), _line_bytes(budget))):
            piece = _clean(data, budget, line_bytes)
            if len(piece.text.encode()) <= budget.max_bytes:
                return _joined(source, readable, (start, end), (piece, False, EMPTY_PIECE))
    if start == end:
        return Excerpt("", end, None)
    parts = _head_and_tail(source, readable, end - start, budget)
    return _joined(source, readable, (start, end), parts)


def without_escapes(data: bytes) -> bytes:
    """Return output without terminal escape sequences."""
    return _ESCAPES.sub(b"", data)


def complete_bytes(data: bytes) -> int:
    """Return the number of bytes before an incomplete character at the end."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            return len(data) - back if _length_by_first_byte(byte) > back else len(data)
    return len(data)


def _length_by_first_byte(byte: int) -> int:
    if 0xC2 <= byte <= 0xDF:
        return 2
    if 0xE0 <= byte <= 0xEF:
        return 3
    return 4 if 0xF0 <= byte <= 0xF4 else 1


def _head_and_tail(
    source: Source, readable: tuple[tuple[int, int], ...], original: int, budget: Budget
) -> tuple[_Piece, bool, _Piece]:
    mark_bytes_max = len(_mark(original, original).encode())
    has_mark = budget.max_bytes >= 2 * mark_bytes_max
    room = budget.max_bytes - (mark_bytes_max if has_mark else 0)
    wanted = budget.max_bytes * 3 // 8 if budget.head_bytes is None else budget.head_bytes
    head_bytes = min(wanted, room) if has_mark else 0
    first, last = (readable[0], readable[-1]) if readable else ((0, 0), (0, 0))
    head = _head(source.read(first[0], min(first[1], first[0] + head_bytes)), head_bytes, budget)
    taken_until = first[0] + head.raw_bytes
    tail_start = max(last[0], last[1] - (room - head_bytes), taken_until)
    tail = _tail(source.read(tail_start, last[1]), room - head_bytes, budget)
    return head, has_mark, tail


def _joined(
    source: Source,
    readable: tuple[tuple[int, int], ...],
    cursors: tuple[int, int],
    parts: tuple[_Piece, bool, _Piece],
) -> Excerpt:
    head, has_mark, tail = parts
    start, end = cursors
    original = end - start
    expired = original - sum(b - a for a, b in readable)
    omitted = original - expired - head.raw_bytes - tail.raw_bytes
    clipped_lines = head.clipped_lines + tail.clipped_lines
    clipped_bytes = head.clipped_bytes + tail.clipped_bytes
    if not (expired or omitted or clipped_lines):
        return Excerpt(head.text + tail.text, end, None)
    head_end = (readable[0][0] if readable else start) + head.raw_bytes
    lines = _count_lines(source, _within(readable, head_end, end - tail.raw_bytes))
    between = _mark(omitted + expired, lines) if has_mark and omitted + expired else ""
    truncation = Truncation(
        original_bytes=original,
        retained_bytes=head.raw_bytes + tail.raw_bytes - clipped_bytes,
        omitted_bytes=omitted,
        omitted_lines=lines,
        clipped_lines=clipped_lines,
        clipped_bytes=clipped_bytes,
        expired_bytes=expired,
    )
    return Excerpt(head.text + between + tail.text, end, truncation)


def _mark(omitted_bytes: int, omitted_lines: int) -> str:
    return f"\n[... {omitted_bytes} bytes in {omitted_lines} lines left out ...]\n"


def _head(data: bytes, limit: int, budget: Budget) -> _Piece:
    """Return the longest beginning that fits, whole lines if that costs less than half of it."""
    data = data[: complete_bytes(data)]
    newline = data.rfind(b"\n") + 1
    if newline > len(data) // 2:
        data = data[:newline]
    while data:
        piece = _clean(data, budget, _line_bytes(budget))
        excess = len(piece.text.encode()) - limit
        if excess <= 0:
            return piece
        data = data[: len(data) - max(1, excess // REPLACEMENT_BYTES)]
        data = data[: complete_bytes(data)]
    return EMPTY_PIECE


def _tail(data: bytes, limit: int, budget: Budget) -> _Piece:
    """Return the longest end that fits, whole lines if that costs less than half of it."""
    data = _from_character(data)
    newline = data.find(b"\n", 0, len(data) // 2) + 1
    data = data[newline:]
    while data:
        piece = _clean(data, budget, _line_bytes(budget))
        excess = len(piece.text.encode()) - limit
        if excess <= 0:
            return piece
        data = _from_character(data[max(1, excess // REPLACEMENT_BYTES) :])
    return EMPTY_PIECE


def _from_character(data: bytes) -> bytes:
    """Drop the rest of a character whose beginning was cut off."""
    begins = next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), 0)
    return data[begins:]


def _line_bytes(budget: Budget) -> int:
    return LINE_BYTES if budget.line_bytes is None else budget.line_bytes


def _clean(data: bytes, budget: Budget, line_bytes: int) -> _Piece:
    shown = data if budget.keeps_escapes else without_escapes(data)
    clipped_lines = clipped_bytes = 0
    if len(shown) > line_bytes:
        lines = shown.split(b"\n")
        for at, line in enumerate(lines):
            if len(line) > line_bytes:
                lines[at], left_out = _clip(line, line_bytes)
                clipped_lines += 1
                clipped_bytes += left_out
        shown = b"\n".join(lines)
    return _Piece(len(data), shown.decode("utf-8", "replace"), clipped_lines, clipped_bytes)


def _clip(line: bytes, limit: int) -> tuple[bytes, int]:
    """Cut out the middle of a line: its end may be the end of the output."""
    half = limit // 2
    before = line[:half]
    before = before[: complete_bytes(before)]
    after = _from_character(line[len(line) - (limit - half) :])
    left_out = len(line) - len(before) - len(after)
    return b"%s[... %d bytes ...]%s" % (before, left_out, after), left_out


def _within(
    spans: tuple[tuple[int, int], ...], start: int, end: int
) -> tuple[tuple[int, int], ...]:
    cut = ((max(a, start), min(b, end)) for a, b in spans)
    return tuple((a, b) for a, b in cut if a < b)


def _count_lines(source: Source, spans: tuple[tuple[int, int], ...]) -> int:
    return sum(
        source.read(at, min(at + COUNT_CHUNK_BYTES, b)).count(b"\n")
        for a, b in spans
        for at in range(a, b, COUNT_CHUNK_BYTES)
    )
