"""Partial answers are written behind the stream, and only while they are needed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.pieces import Chunk, Piece
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolResultDelta
from chatd.primitives.domain.ids import ChatId, MessageId, WorkerId
from chatd.streams.engine.live import LivePart
from chatd.streams.engine.partials import CHUNK_CHARACTERS, WRITE_EVERY_S, PartialWriter
from parley.clock import FakeClock
from parley.tasks import BackgroundTasks
from support.host.supervised import supervision

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
BAD = ChatId("00000000-0000-0000-0000-000000000002")
OTHER = ChatId("00000000-0000-0000-0000-000000000003")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
RUNNING = ChatState(CHAT, Status.RUNNING, 5, 5, 1, MessageId(3), worker_id=WORKER)


class NotedPartials:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.chunks: asyncio.Queue[tuple[Chunk, ...]] = asyncio.Queue()

    async def add(self, chunks: tuple[Chunk, ...]) -> None:
        if BAD in [chunk.chat_id for chunk in chunks]:
            raise ValueError("it cannot be written")
        self.chunks.put_nowait(chunks)


def part(seq: int, text: str, attempt: int = 1) -> LivePart:
    return LivePart(5, attempt, seq, 0, Role.ASSISTANT, Text(text))


@asynccontextmanager
async def running_writer() -> AsyncIterator[tuple[PartialWriter, NotedPartials, FakeClock]]:
    clock, partials = FakeClock(), NotedPartials()
    writer = PartialWriter(partials, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(writer.run())
        await clock.until_sleeping()
        yield writer, partials, clock
        task.cancel()


async def test_what_was_shown_is_written_on_the_next_beat() -> None:
    async with running_writer() as (writer, partials, clock):
        writer.shown(CHAT, part(1, "hel"))
        writer.shown(CHAT, part(2, "lo"))
        clock.advance(WRITE_EVERY_S)
        written = await partials.chunks.get()
    pieces = (Piece(Role.ASSISTANT, 0, Text("hel")), Piece(Role.ASSISTANT, 0, Text("lo")))
    assert written == (Chunk(CHAT, 5, 1, 1, pieces),)


async def test_much_text_is_written_before_the_beat() -> None:
    async with running_writer() as (writer, partials, _):
        writer.shown(CHAT, part(1, "x" * CHUNK_CHARACTERS))
        (chunk,) = await partials.chunks.get()
    assert chunk.first_seq == 1


async def test_an_episode_that_was_committed_before_the_beat_costs_nothing() -> None:
    async with running_writer() as (writer, partials, clock):
        writer.shown(CHAT, part(1, "hello"))
        writer.state_changed(ChatState(CHAT, Status.WAITING, 6, 6, 0, MessageId(4)))
        clock.advance(WRITE_EVERY_S)
        await clock.until_sleeping()
        assert partials.chunks.empty()


async def test_a_commit_that_leaves_the_episode_open_keeps_what_was_shown() -> None:
    async with running_writer() as (writer, partials, clock):
        writer.shown(CHAT, part(1, "hello"))
        writer.state_changed(RUNNING)
        clock.advance(WRITE_EVERY_S)
        (chunk,) = await partials.chunks.get()
    assert chunk.pieces == (Piece(Role.ASSISTANT, 0, Text("hello")),)


async def test_the_next_attempt_begins_a_chunk_of_its_own() -> None:
    async with running_writer() as (writer, partials, clock):
        writer.shown(CHAT, part(1, "first"))
        writer.shown(CHAT, part(1, "second", attempt=2))
        clock.advance(WRITE_EVERY_S)
        (chunk,) = await partials.chunks.get()
    assert (chunk.generation_attempt, chunk.pieces[0].part) == (2, Text("second"))


async def test_pieces_that_cannot_be_written_cost_the_other_chats_nothing() -> None:
    clock, partials = FakeClock(), NotedPartials()
    writer = PartialWriter(partials, clock)
    for chat_id in (CHAT, BAD, OTHER):
        writer.shown(chat_id, part(1, "hello"))
    async with asyncio.timeout(5), BackgroundTasks(supervision(clock)) as tasks:
        tasks.keep("partials.write", writer.run)
        await clock.until_sleeping()
        clock.advance(WRITE_EVERY_S)
        written = [(await partials.chunks.get())[0].chat_id for _ in range(2)]
        # The failure is told, and what comes afterwards is written as before.
        clock.advance(await clock.until_sleeping())
        await clock.until_sleeping()
        writer.shown(CHAT, part(2, "again"))
        clock.advance(WRITE_EVERY_S)
        written.append((await partials.chunks.get())[0].chat_id)
    assert written == [CHAT, OTHER, CHAT]


async def test_the_output_of_running_calls_is_not_written() -> None:
    delta = ToolResultDelta("c1", "execute", text="x" * 100_000)
    async with running_writer() as (writer, partials, clock):
        writer.shown(CHAT, LivePart(5, 1, 1, 0, Role.TOOL, delta))
        writer.shown(CHAT, part(2, "hello"))
        clock.advance(WRITE_EVERY_S)
        written = await partials.chunks.get()
    assert written == (Chunk(CHAT, 5, 1, 2, (Piece(Role.ASSISTANT, 0, Text("hello")),)),)
