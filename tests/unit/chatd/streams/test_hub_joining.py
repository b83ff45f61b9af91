"""Pieces that follow one another quickly are joined before they are numbered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall
from chatd.primitives.domain.ids import ChatId, Fence
from chatd.streams.engine.flush_timer import INTERVAL_S, FlushTimer
from chatd.streams.engine.live import (
    JOINED_BYTES_MAX,
    Episode,
    LiveChats,
    LivePart,
)
from parley.clock import FakeClock

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def joining() -> AsyncIterator[tuple[Episode, list[LivePart], FakeClock]]:
    clock, shown = FakeClock(), list[LivePart]()
    flush_timer = FlushTimer(clock)
    live = LiveChats(lambda _, part: shown.append(part), flush_timer=flush_timer)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        beating = tasks.create_task(flush_timer.run())
        yield live.open(CHAT, Fence(1, 2, 1)), shown, clock
        beating.cancel()


async def beat(clock: FakeClock, *, late_s: float = 0.0) -> None:
    """Let the beat end that is waited for, or a while after it should have."""
    clock.advance(await clock.until_sleeping() + late_s)
    for _ in range(5):
        loop = asyncio.get_running_loop()
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


def texts(shown: list[LivePart]) -> list[str]:
    return [getattr(part.part, "text", type(part.part).__name__) for part in shown]


async def test_the_first_piece_goes_out_at_once_and_the_others_together() -> None:
    async with joining() as (episode, shown, clock):
        for word in ("a", "b", "c"):
            episode.add(Role.ASSISTANT, 0, Text(word))
        assert texts(shown) == ["a"]
        await beat(clock)
        assert texts(shown) == ["a", "bc"]
        await beat(clock)
        episode.add(Role.ASSISTANT, 0, Text("d"))
    assert texts(shown) == ["a", "bc", "d"]
    assert [part.seq for part in shown] == [1, 2, 3]


async def test_pieces_wait_longer_behind_a_beat_that_came_late() -> None:
    async with joining() as (episode, shown, clock):
        episode.add(Role.ASSISTANT, 0, Text("a"))
        await beat(clock, late_s=0.02)
        for word in ("b", "c"):
            episode.add(Role.ASSISTANT, 0, Text(word))
        assert texts(shown) == ["a", "b"]
        assert await clock.until_sleeping() == pytest.approx(INTERVAL_S + 0.04)
        await beat(clock)
    assert texts(shown) == ["a", "b", "c"]


async def test_much_text_does_not_wait() -> None:
    async with joining() as (episode, shown, _):
        episode.add(Role.ASSISTANT, 0, Text("a"))
        episode.add(Role.ASSISTANT, 0, Text("b"))
        episode.add(Role.ASSISTANT, 0, Text("x" * JOINED_BYTES_MAX))
    assert texts(shown) == ["a", "b" + "x" * JOINED_BYTES_MAX]


async def test_parts_are_never_joined_across_their_boundaries() -> None:
    done = ToolCall("c", "tool", "{}", created_at=NOW)
    pieces: list[tuple[int, Part]] = [
        (0, Reasoning("th", NOW)),
        (0, Reasoning("ought")),
        (0, Reasoning("", None, NOW)),
        (1, Text("te")),
        (1, Text("xt")),
        (2, Text("other")),
        (3, ToolCall("c", "tool", '{"a"')),
        (3, ToolCall("c", "tool", ":1}")),
        (3, done),
    ]
    async with joining() as (episode, shown, clock):
        for index, part in pieces:
            episode.add(Role.ASSISTANT, index, part)
        await beat(clock)
    assert [(part.part_index, part.part) for part in shown] == [
        (0, Reasoning("th", NOW)),
        (0, Reasoning("ought", None, NOW)),
        (1, Text("text")),
        (2, Text("other")),
        (3, ToolCall("c", "tool", '{"a":1}')),
        (3, done),
    ]


async def test_an_episode_that_is_over_shows_nothing_more() -> None:
    shown: list[LivePart] = []
    live = LiveChats(lambda _, part: shown.append(part))
    first = live.open(CHAT, Fence(1, 2, 1))
    live.open(CHAT, Fence(1, 2, 2))
    first.add(Role.ASSISTANT, 0, Text("late"))
    assert shown == []


async def test_of_a_very_long_answer_only_the_newest_is_kept() -> None:
    live = LiveChats()
    episode = live.open(CHAT, Fence(1, 2, 1))
    for _ in range(40):
        episode.add(Role.ASSISTANT, 0, Text("x" * 50_000))
    kept = live.parts(CHAT, 2, 1)
    assert sum(part.characters for part in kept) <= 1 << 20
    assert kept[-1].seq == 40
