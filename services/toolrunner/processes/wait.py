"""Waits for a process: until its exit, its output or a matching line, without polling."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

import re2

from toolrunner.journal.records import LIVE, ProcessRecord
from toolrunner.primitives.domain import ProcessId, Scope
from toolrunner.primitives.errors import InvalidPattern, InvalidRequest, ProcessNotFound
from toolrunner.processes.live_process import ChangeSignal, LiveProcess
from toolrunner.processes.output.excerpt import Budget, Excerpt, Source, excerpt, without_escapes
from toolrunner.processes.registry import Registry

#: Output is searched in pieces of at most so many bytes and lines.
PIECE_BYTES: Final = 16 * 1024
PIECE_LINES: Final = 1000
#: How long a search holds the event loop before others run.
HOLD_S: Final = 0.005
#: How long output that is there already is searched, however short the wait.
SEARCH_S: Final = 0.5
#: How long an incomplete line must be unchanged until it is matched, like the prompt of a program.
STANDS_S: Final = 0.25
PATTERN_CHARACTERS_MAX: Final = 1000
LINE_BYTES_MAX: Final = 4096


class LineMatcher:
    """Matches complete lines in linear time (RE2); of long ones only the beginning.

    Raises:
        InvalidPattern: The expression is not valid.
    """

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._expression = re2.compile(pattern, options=options)
        except re2.error as error:
            raise InvalidPattern(pattern, _text_of(error)) from error
        self._rest = b""

    @property
    def has_begun(self) -> bool:
        """Whether there is an incomplete line."""
        return bool(self._rest)

    def feed(self, data: bytes) -> str | None:
        """Return the first complete line that matches."""
        *lines, rest = (self._rest + data).split(b"\n")
        # Only the beginning of a line is matched, so the rest of a long one is not kept.
        self._rest = rest[:LINE_BYTES_MAX]
        return next((line for line in map(self._matched, lines) if line is not None), None)

    def finish(self) -> str | None:
        """Return the last, incomplete line if it matches."""
        return self._matched(self._rest) if self._rest else None

    def _matched(self, line: bytes) -> str | None:
        text = without_escapes(line[:LINE_BYTES_MAX].rstrip(b"\r")).decode("utf-8", "replace")
        if self._expression.search(text) is None:
            return None
        return text.encode()[:LINE_BYTES_MAX].decode(errors="ignore")


def _text_of(error: Exception) -> str:
    first = error.args[0] if error.args else "it cannot be read"
    return first.decode(errors="replace") if isinstance(first, bytes) else str(first)


class Until(StrEnum):
    """The condition that ends a wait."""

    EXIT = "exit"
    OUTPUT = "output"
    MATCH = "match"
    SNAPSHOT = "snapshot"


class Reason(StrEnum):
    """Why a wait ended; names are those of the proto."""

    EXITED = "exited"
    OUTPUT = "output"
    MATCHED = "matched"
    TIMEOUT = "timeout"
    SNAPSHOT = "snapshot"
    GOING_AWAY = "going_away"


@dataclass(frozen=True, slots=True)
class Wait:
    """The condition, the timeout, and the budget of the output."""

    until: Until
    max_wait_s: float
    since_cursor: int
    budget: Budget
    pattern: str = ""  # For a match.


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The result of a wait.

    Attributes:
        search_cursor: Where a search that found nothing goes on.
    """

    record: ProcessRecord
    output: Excerpt
    reason: Reason
    matched_line: str = ""
    search_cursor: int = 0


async def wait_output(
    registry: Registry, scope: Scope, process_id: ProcessId, wait: Wait
) -> WaitResult:
    """Wait for a process and return its output after a cursor; a timeout is a normal result.

    Raises:
        ProcessNotFound: There is none that this chat may see.
        InvalidRequest: The cursor is past the output.
        InvalidPattern: The expression is not valid.
    """
    live = registry.live(process_id)
    record = live.record if live is not None else await registry.get(scope, process_id)
    if not scope.may_see(record):
        raise ProcessNotFound(process_id)
    output_bytes = record.output_bytes if live is None else live.output.total_bytes
    if wait.since_cursor > output_bytes:
        raise InvalidRequest("since_cursor", f"is past the output of {output_bytes} bytes")
    search = _search_of(wait, registry.output(record)) if wait.until is Until.MATCH else None
    if live is None:
        found = None if search is None else await search.found(lambda: True)
        reason = found or Reason.EXITED
    else:
        reason = await _reason(live, wait, search, registry.stopping)
    # The record is read before the output: one that is exited comes with all of its output.
    record = await registry.get(scope, process_id)
    source = registry.output(record)
    spans = source.spans
    end = spans[-1][1] if spans else 0
    if live is not None and record.state in LIVE:
        end = max(wait.since_cursor, live.output.complete_bytes)
    start = min(wait.since_cursor, end)
    shown = excerpt(source, start, end, wait.budget)
    if search is None:
        return WaitResult(record, shown, reason)
    return WaitResult(record, shown, reason, search.line, search.line_start)


class LineSearch:
    """Searches a line in the output after a cursor, each byte once.

    Args:
        pattern: The expression.
        source: The output.
        cursor: Where the search begins.
        until_s: When the search ends, by the clock of the event loop.

    Attributes:
        line: The line that was found.
        line_start: The cursor before the incomplete line at the end of the searched part.
        is_quiet: Whether no output arrived for a while after the searched part.

    Raises:
        InvalidPattern: The expression is not valid.
    """

    def __init__(self, pattern: str, source: Source, cursor: int, until_s: float) -> None:
        self.line = ""
        self.is_quiet = False
        self._matcher = LineMatcher(pattern)
        self._source = source
        self._cursor = self.line_start = cursor
        self._until_s = until_s

    async def found(self, is_over: Callable[[], bool]) -> Reason | None:
        """Search new output; the incomplete last line counts at the end, or when it is quiet.

        Others run between pieces. After the time of the search at least one piece is searched;
        the result is a timeout if there is more.
        """
        time = asyncio.get_running_loop().time
        held_since_s = time()
        is_begun = False
        while (end := self._end_of_next()) is not None:
            now_s = time()
            if is_begun and now_s >= self._until_s:
                return Reason.TIMEOUT
            if now_s - held_since_s >= HOLD_S:
                await asyncio.sleep(0)  # noqa: TID251 (no time passes; others run)
                held_since_s = time()
                is_begun = False
                continue  # The log may have changed meanwhile.
            is_begun = True
            if (line := self._matched_in_piece(end)) is not None:
                self.line = line
                return Reason.MATCHED
        if (is_over() or self.is_quiet) and (line := self._matcher.finish()) is not None:
            self.line = line
            return Reason.MATCHED
        return None

    def _end_of_next(self) -> int | None:
        """Return where the part ends that is searched next; None if there is none."""
        for start, end in self._source.spans:
            if start > self._cursor:
                self._cursor = self.line_start = start  # The log no longer has what was before.
            if self._cursor < end:
                return end
        return None

    def _matched_in_piece(self, end: int) -> str | None:
        """Search the next piece of a part; return the line that matches."""
        self.is_quiet = False
        data = self._source.read(self._cursor, min(end, self._cursor + PIECE_BYTES))
        if not data:
            self._cursor = self.line_start = end  # Its file was removed.
            return None
        data = data[: _end_of_lines(data, PIECE_LINES)]
        if (newline := data.rfind(b"\n")) >= 0:
            self.line_start = self._cursor + newline + 1
        self._cursor += len(data)
        return self._matcher.feed(data)

    async def changed(self, change: ChangeSignal) -> None:
        """Return at the next change, or once an incomplete line stayed unchanged."""
        may_stand = self._matcher.has_begun and not self.is_quiet
        try:
            async with asyncio.timeout(STANDS_S if may_stand else None):
                await change.wait()
        except TimeoutError:
            # Output that arrived at this moment is searched first, and clears the flag.
            self.is_quiet = True


def _search_of(wait: Wait, source: Source) -> LineSearch:
    until_s = asyncio.get_running_loop().time() + max(wait.max_wait_s, SEARCH_S)
    return LineSearch(wait.pattern, source, wait.since_cursor, until_s)


def _end_of_lines(data: bytes, lines_max: int) -> int:
    """Return where so many lines end; the end of the data if it has fewer."""
    end = 0
    for _ in range(lines_max):
        newline = data.find(b"\n", end)
        if newline < 0:
            return len(data)
        end = newline + 1
    return end


async def _reason(
    live: LiveProcess, wait: Wait, search: LineSearch | None, stopping: asyncio.Event
) -> Reason:
    time = asyncio.get_running_loop().time
    until_s = time() + wait.max_wait_s
    while (reason := await _met(live, wait, search)) is None:
        if stopping.is_set():
            return Reason.GOING_AWAY
        if time() >= until_s:
            return Reason.TIMEOUT
        # A wait for the exit is not woken by every piece of output.
        change = live.ending if wait.until is Until.EXIT else live.output_grew
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until_s):
                await (change.wait() if search is None else search.changed(change))
    return reason


async def _met(live: LiveProcess, wait: Wait, search: LineSearch | None) -> Reason | None:
    """Return why a wait is over; nothing else runs between its last check and its return."""
    match wait.until:
        case Until.SNAPSHOT:
            return Reason.SNAPSHOT
        case Until.EXIT:
            return Reason.EXITED if live.ended.is_set() else None
        case Until.MATCH:
            found = None if search is None else await search.found(live.ended.is_set)
            return found or (Reason.EXITED if live.ended.is_set() else None)
        case Until.OUTPUT:
            if live.output.complete_bytes > wait.since_cursor:
                return Reason.OUTPUT
            return Reason.EXITED if live.ended.is_set() else None
        case _:
            assert_never(wait.until)
