import asyncio
from contextlib import aclosing
from pathlib import Path

import grpc
import pytest

from parley.client import (
    Backoff,
    ChatEvent,
    ChatStatus,
    Message,
    MessageCommitted,
    NotFound,
    Parley,
    PartStreamed,
    Patience,
    Resync,
    Role,
    StatusChanged,
    Text,
    Unavailable,
    connect,
)
from parley.clock import FakeClock
from parley.rpc import Problem, ranked
from support.client.chat_service import (
    GOING_AWAY,
    GONE,
    RESYNC,
    UNAVAILABLE,
    FakeChatd,
    Pause,
    Tokens,
    answer_event,
    delta_event,
    fake_chatd,
    status_event,
)

CHAT = "0190f5a0-0000-7000-8000-0000000000aa"

RUNNING = StatusChanged("1", ChatStatus.RUNNING)
HEL = PartStreamed("2", Role.ASSISTANT, Text("hel"), 0, 1, 1, 1)
LO = PartStreamed("3", Role.ASSISTANT, Text("lo"), 0, 1, 1, 2)
HELLO = MessageCommitted("4", Message(2, "c", Role.ASSISTANT, (Text("hello"),)))
WAITING = StatusChanged("5", ChatStatus.WAITING)

running, hel, lo = (
    status_event("1", "running"),
    delta_event("2", 1, "hel"),
    delta_event("3", 2, "lo"),
)
hello, waiting = answer_event("4", 2, "hello"), status_event("5", "waiting")


async def read(parley: Parley, until: str, *, cursor: str = "") -> list[ChatEvent]:
    """Return the events up to the one whose cursor is `until`."""
    read: list[ChatEvent] = []
    async with aclosing(parley.follow(CHAT, cursor=cursor)) as events:
        async for event in events:
            read.append(event)
            if event.cursor == until:
                return read
    raise AssertionError("following has no end of its own")


def cursors(*processes: FakeChatd) -> list[str]:
    return [request.cursor for chatd in processes for request in chatd.streams.requests]


async def test_a_reader_gets_everything_in_order(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, hel, lo, hello, waiting, Pause()])

    async with asyncio.timeout(5):
        assert await read(parley, "5") == [RUNNING, HEL, LO, HELLO, WAITING]


async def test_a_reader_goes_on_after_its_own_cursor(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([waiting, Pause()])

    async with asyncio.timeout(5):
        assert await read(parley, "5", cursor="4") == [WAITING]

    assert cursors(chatd) == ["4"]


async def test_a_stream_that_is_cut_resumes_at_its_cursor(tokens: Tokens, chatd: FakeChatd) -> None:
    clock = FakeClock()
    chatd.streams.scripts.append([running, hel, UNAVAILABLE])
    chatd.streams.scripts.append([lo, hello, waiting, Pause()])

    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue(), clock=clock) as parley,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(read(parley, "5"))
        clock.advance(await clock.until_sleeping())

    assert reading.result() == [RUNNING, HEL, LO, HELLO, WAITING]
    assert cursors(chatd) == ["", "2"]


async def test_a_stream_outlives_a_restart_of_the_process(tokens: Tokens, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/chatd.sock"
    async with (
        asyncio.timeout(15),
        connect(address, token=tokens.issue()) as parley,
        aclosing(parley.follow(CHAT)) as events,
    ):
        async with fake_chatd(tokens, address) as before:
            before.streams.scripts.append([running, hel, Pause()])
            seen = [await anext(events), await anext(events)]
        async with fake_chatd(tokens, address) as after:
            after.streams.scripts.append([lo, Pause()])
            seen.append(await anext(events))

    assert seen == [RUNNING, HEL, LO]
    assert cursors(before, after) == ["", "2"]


async def test_a_process_that_goes_away_hands_over_to_the_next(
    tokens: Tokens, tmp_path: Path
) -> None:
    async with (
        asyncio.timeout(5),
        fake_chatd(tokens, f"unix:{tmp_path}/a.sock") as a,
        fake_chatd(tokens, f"unix:{tmp_path}/b.sock") as b,
        connect(a.address, b.address, token=tokens.issue(), clock=FakeClock()) as parley,
    ):
        first = a if ranked(CHAT, (a.address, b.address))[0] == a.address else b
        second = b if first is a else a
        first.streams.scripts.append([running, GOING_AWAY])
        second.streams.scripts.append([hel, Pause()])
        assert await read(parley, "2") == [RUNNING, HEL]

    assert cursors(first, second) == ["", "1"]


async def test_a_stream_that_cannot_be_resumed_says_so_and_begins_anew(
    tokens: Tokens, chatd: FakeChatd
) -> None:
    chatd.streams.scripts.append([running, hel, RESYNC])
    chatd.streams.scripts.append([hello, waiting, Pause()])

    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue(), clock=FakeClock()) as parley,
    ):
        assert await read(parley, "5") == [RUNNING, HEL, Resync(), HELLO, WAITING]

    assert cursors(chatd) == ["", ""]


async def test_a_resync_told_as_a_problem_is_the_same(tokens: Tokens, chatd: FakeChatd) -> None:
    behind = Problem(grpc.StatusCode.ABORTED, "RESYNC", "read anew")
    chatd.streams.scripts.append([running, behind])
    chatd.streams.scripts.append([waiting, Pause()])

    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue(), clock=FakeClock()) as parley,
    ):
        assert await read(parley, "5") == [RUNNING, Resync(), WAITING]


async def test_a_chat_that_is_gone_ends_the_following(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, GONE])

    async with asyncio.timeout(5), aclosing(parley.follow(CHAT)) as events:
        assert await anext(events) == RUNNING
        with pytest.raises(NotFound) as gone:
            await anext(events)

    assert gone.value.reason == "CHAT_NOT_FOUND"


async def test_streams_that_bring_nothing_are_opened_only_so_often(
    tokens: Tokens, chatd: FakeChatd
) -> None:
    patience = Patience(streams=Backoff(attempts_max=3, first_s=0.0))
    chatd.streams.scripts.extend([[GOING_AWAY]] * 3)

    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue(), patience=patience) as parley,
    ):
        with pytest.raises(Unavailable) as lost:
            await read(parley, "never")

    assert lost.value.reason == "STREAM_ENDED"
    assert cursors(chatd) == ["", "", ""]


async def test_leaving_the_loop_ends_the_call(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, Pause()])

    async with asyncio.timeout(5):
        await read(parley, "1")
        await chatd.streams.until_left(1)
