"""Searches in long logs: others run meanwhile, and progress is kept when the time is over."""

import asyncio
from dataclasses import dataclass

import pytest

from toolrunner.processes.wait import PIECE_BYTES, LineSearch, Reason

#: A time of the event loop that is over, and one that never comes.
OVER_S = 0.0
NEVER_S = float("inf")


@dataclass
class Log:
    """A log in memory; the oldest part may be gone."""

    data: bytes
    start: int = 0

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        return ((self.start, len(self.data)),)

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]


async def test_others_run_while_a_long_log_is_searched() -> None:
    search = LineSearch("never", Log(b"x\n" * 200_000), 0, NEVER_S)
    loop = asyncio.get_running_loop()
    turns: list[float] = []

    def take_turn() -> None:
        turns.append(loop.time())
        if len(turns) < 4:
            loop.call_soon(take_turn)

    loop.call_soon(take_turn)
    assert await search.found(lambda: True) is None
    assert len(turns) == 4


@pytest.mark.parametrize("line", [b"\n", b"some line\n"])
async def test_a_search_whose_time_is_over_keeps_its_progress(line: bytes) -> None:
    log = Log(line * (PIECE_BYTES // len(line) * 4) + b"ready\n")
    cursors = [0]
    while True:
        search = LineSearch("^ready$", log, cursors[-1], OVER_S)
        reason = await search.found(lambda: True)
        if reason is Reason.MATCHED:
            break
        assert reason is Reason.TIMEOUT
        assert search.line_start > cursors[-1]
        cursors.append(search.line_start)
    assert search.line == "ready"
    assert len(cursors) > 3


async def test_the_last_line_counts_only_once_all_was_searched() -> None:
    log = Log(b"a\n" * PIECE_BYTES + b"ready")
    assert await LineSearch("ready", log, 0, OVER_S).found(lambda: True) is Reason.TIMEOUT
    assert await LineSearch("ready", log, 0, NEVER_S).found(lambda: True) is Reason.MATCHED
    assert await LineSearch("ready", log, 0, NEVER_S).found(lambda: False) is None


async def test_a_log_that_loses_its_beginning_is_searched_on() -> None:
    log = Log(b"old\n" * 10 + b"ready\n", start=40)
    assert await LineSearch("ready", log, 0, OVER_S).found(lambda: False) is Reason.MATCHED
