"""A client process: reads its plan and then words from standard input, tells lines on the other."""

import asyncio
import random  # noqa: TID251 (a composition root)
import sys
from contextlib import suppress

import msgspec
import uvloop

from parley.clock import SystemClock
from parley.testing.scaletest.chat_group import Crowd
from parley.testing.scaletest.messages import (
    Conversed,
    Ended,
    FirstTurnOver,
    Line,
    Ready,
    Standing,
    Word,
    encoded,
)
from parley.testing.scaletest.plan import Plan

STANDING_S = 0.5
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
    chance = random.Random(f"{plan.seed}-{plan.first}")
    async with asyncio.TaskGroup() as streams:
        crowd = Crowd(plan, streams, clock=clock, chance=chance)
        async with asyncio.TaskGroup() as tasks:
            conversing = tasks.create_task(crowd.converse())
            around = [
                tasks.create_task(_tell_standing(crowd, clock)),
                tasks.create_task(_tell_first_turn(crowd)),
                tasks.create_task(_obey(words, crowd, conversing)),
            ]
            await asyncio.wait([conversing])
            _tell(Conversed())
            await around[-1]
            for task in around:
                task.cancel()
        _tell(Ended(list(await crowd.end())))


async def _tell_standing(crowd: Crowd, clock: SystemClock) -> None:
    while True:
        await clock.sleep(STANDING_S)
        _tell(Standing(crowd.turns, crowd.failed))


async def _tell_first_turn(crowd: Crowd) -> None:
    await crowd.everybody_waits()
    _tell(FirstTurnOver())


async def _obey(
    words: asyncio.StreamReader, crowd: Crowd, conversing: "asyncio.Task[None]"
) -> None:
    """Do what is said until the end is asked for; whoever asked may also be gone."""
    while True:
        word = (await words.readline()).decode().strip()
        if word == Word.FOLLOW_UP:
            crowd.release()
            continue
        if word != Word.END or not conversing.done():
            crowd.stop("the time given with --timeout was over")
            conversing.cancel()
        if word != Word.STOP:
            return


if __name__ == "__main__":
    uvloop.run(_run())
