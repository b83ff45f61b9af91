"""A client process: reads its plan and then commands from standard input, and writes JSON lines."""

import asyncio
import random  # noqa: TID251 (a composition root)
import sys
from contextlib import suppress

import msgspec
import uvloop

from parley.clock import SystemClock
from parley.testing.scaletest.chat_group import ChatGroup
from parley.testing.scaletest.messages import (
    Command,
    Conversed,
    Ended,
    FirstTurnOver,
    Line,
    ProgressReport,
    Ready,
    encoded,
)
from parley.testing.scaletest.plan import Plan

PROGRESS_S = 0.5
PLAN_BYTES_MAX = 1 << 20


def _tell(line: Line) -> None:
    # The parent may have ended; the chats are cleaned up nevertheless.
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(encoded(line))
        sys.stdout.buffer.flush()


async def _read_words() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=PLAN_BYTES_MAX)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


async def _run() -> None:
    words = await _read_words()
    plan = msgspec.json.decode(await words.readline(), type=Plan)
    clock = SystemClock()
    _tell(Ready())
    await words.readline()
    # The seed differs between processes, and is the same for a process in every run.
    rng = random.Random(f"{plan.seed}-{plan.first}")
    async with asyncio.TaskGroup() as streams:
        crowd = ChatGroup(plan, streams, clock=clock, rng=rng)
        async with asyncio.TaskGroup() as tasks:
            conversing = tasks.create_task(crowd.converse())
            around = [
                tasks.create_task(_report_progress(crowd, clock)),
                tasks.create_task(_report_first_turn(crowd)),
                tasks.create_task(_follow_commands(words, crowd, conversing)),
            ]
            await asyncio.wait([conversing])
            _tell(Conversed())
            await around[-1]
            for task in around:
                task.cancel()
        _tell(Ended(list(await crowd.end())))


async def _report_progress(crowd: ChatGroup, clock: SystemClock) -> None:
    while True:
        await clock.sleep(PROGRESS_S)
        _tell(ProgressReport(crowd.turns, crowd.failed))


async def _report_first_turn(crowd: ChatGroup) -> None:
    await crowd.first_turns_done()
    _tell(FirstTurnOver())


async def _follow_commands(
    words: asyncio.StreamReader, crowd: ChatGroup, conversing: "asyncio.Task[None]"
) -> None:
    """Run commands until END or the end of input: the parent may have ended."""
    while True:
        word = (await words.readline()).decode().strip()
        if word == Command.FOLLOW_UP:
            crowd.release()
            continue
        if word != Command.END or not conversing.done():
            crowd.stop("the time given with --timeout was over")
            conversing.cancel()
        if word != Command.STOP:
            return


if __name__ == "__main__":
    uvloop.run(_run())
