import logging
import time
from pathlib import Path

import pytest

from parley.clock import SystemClock
from parley.process.watchdog import watched_event_loop


def block_until_noticed(file: Path) -> None:
    give_up_at = time.monotonic() + 5
    while "block_until_noticed" not in file.read_text():
        assert time.monotonic() < give_up_at


async def test_what_blocks_the_event_loop_is_written_down_while_it_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stacks = tmp_path / "stacks"
    with (
        stacks.open("w") as file,
        watched_event_loop(blocked_s=0.5, turn_every_s=0.01, file=file),
        caplog.at_level(logging.ERROR),
    ):
        block_until_noticed(stacks)
        await SystemClock().sleep(0.02)
    assert "the event loop did not turn" in caplog.text


async def test_a_loop_that_turns_leaves_no_trace(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    with stacks.open("w") as file, watched_event_loop(turn_every_s=0.01, file=file):
        await SystemClock().sleep(0.05)
    assert stacks.read_text() == ""
