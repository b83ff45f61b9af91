"""A client process: reads its plan and then words from standard input, tells lines on the other."""

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
    # Whoever listened may be gone; what was begun is cleaned up all the same.
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
    # Other processes draw other numbers, and the same process the same ones in every run.
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
    """Do what is said until the end is asked for; whoever asked may also be gone."""
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
