"""The log of a preparation, followed by readers of any speed."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from toolrunner.workspaces.preparation_log import PreparationLog

NOW = datetime(2026, 1, 2, tzinfo=UTC)


async def test_what_is_said_while_a_line_is_taken_is_not_lost_nor_the_end(tmp_path: Path) -> None:
    log = PreparationLog(tmp_path / "log.jsonl")
    ended = asyncio.Event()
    log.say("setup", "one", NOW)
    following = log.followed(0, ended.is_set)
    async with asyncio.timeout(5):
        taken = [await anext(following)]
        log.say("setup", "two", NOW)
        ended.set()
        log.grew.changed()
        taken += [line async for line in following]
    assert [(line.sequence, line.text) for line in taken] == [(1, "one"), (2, "two")]
