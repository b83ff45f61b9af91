"""Cutting streams anywhere and resuming them anywhere: nothing is lost, nothing comes twice."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chatd.chats.domain.chat import ChatState, NewMessage, Retry
from chatd.chats.domain.commands import (
    CommitStep,
    FailTurn,
    Interrupt,
    RecordRetry,
)
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, MessageId
from chatd.streams.store.chat_reads import PostgresStreamReads
from parley.api.chat.v1 import event_pb2
from parley.postgres import Pool
from support.chatd.streams.folding import Folded, fold, read_until, stored, without_preview
from support.chatd.streams.stream_replicas import Replica, Town, replica_in, town_of

OOPS = TurnError("It broke.", ErrorKind.GENERIC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
async def town(pool: Pool, tmp_path: Path) -> AsyncIterator[Town]:
    async with town_of(pool, tmp_path) as shared:
        yield shared


async def live_through(a: Replica, chat_id: ChatId) -> int:
    """Let a chat have turns, tools, retries, an error, a queue and an interruption."""
    for turn in range(6):
        # Parts of an episode that is over before a hub has read of it are not sent to anybody.
        await a.until_followed(chat_id)
        episode = await a.episode(chat_id)
        for number in range(80):
            episode.add(Role.ASSISTANT, 0, Text(f"{turn}.{number} "))
        state = await a.chats.state(chat_id)
        step = tuple(NewMessage(Role.ASSISTANT, (Text(f"step {turn}.{n}"),)) for n in range(3))
        state = await a.do(chat_id, CommitStep(fence_of(state), step))
        if turn == 1:
            retry = Retry(1, 10, LATER, OOPS)
            episode = await a.episode(chat_id)
            episode.add(Role.ASSISTANT, 0, Text("never finished"))
            state = await a.do(chat_id, RecordRetry(fence_of(state), retry))
        if turn == 2:
            await a.send(chat_id, "queued one")
            await a.send(chat_id, "queued two")
            await a.finish(chat_id, "first", "second")
            await a.finish(chat_id, "third")
        if turn == 3:
            await a.do(chat_id, FailTurn(fence_of(state), OOPS))
        elif turn == 4:
            await a.do(chat_id, Interrupt(MessageId(0), a.worker_id))
            await a.finish_interruption(chat_id, "stopped")
        else:
            await a.finish(chat_id, f"answer {turn}", f"more {turn}")
        await a.send(chat_id, f"question {turn}")
    state = await a.finish(chat_id, "the end")
    return state.snapshot_version


async def resume_everywhere(
    events: list[event_pb2.ChatEvent], chat_id: ChatId, version: int, *replicas: Replica
) -> None:
    """Cut the stream behind every event and resume it, here and there in turns."""
    expected = await stored(PostgresStreamReads(replicas[0].town.pool), chat_id)
    known = Folded()
    for place, event in enumerate(events):
        known = fold(known, event)
        if known.is_settled_at == version:
            break
        resumed = replicas[place % len(replicas)].subscribe(chat_id, event.cursor)
        end = await read_until(resumed, known, version)
        resumed.cancel()
        assert without_preview(end) == expected, event.cursor


async def test_a_stream_resumed_at_any_event_goes_on_exactly_there(town: Town) -> None:
    events: list[event_pb2.ChatEvent] = []
    async with (
        asyncio.timeout(200),
        replica_in(town, "a", joins=False) as a,
        replica_in(town, "b") as b,
    ):
        chat_id = await a.create()
        live = a.subscribe(chat_id)
        first = await read_until(live, Folded(), 1, events)
        async with asyncio.TaskGroup() as tasks:
            living = tasks.create_task(live_through(a, chat_id))

            async def read() -> Folded:
                known = first
                while not living.done() or (known.is_settled_at or 0) < living.result():
                    response = await live.read()
                    known = fold(known, response.event)
                    events.append(response.event)
                return known

            reading = tasks.create_task(read())
        version, last = living.result(), reading.result()
        assert without_preview(last) == await stored(PostgresStreamReads(town.pool), chat_id)
        await resume_everywhere(events, chat_id, version, a, b)

        edited = await a.edit(chat_id, 7, "another question")
        finished = await a.finish(chat_id, "another answer")
        await read_until(live, last, finished.snapshot_version, events)
        await resume_everywhere(events, chat_id, edited.snapshot_version + 1, b, a)
    assert len(events) > 500
    assert {event.WhichOneof("kind") for event in events} == {
        "message",
        "message_part",
        "status",
        "queue_update",
        "error",
        "retry",
        "preview_reset",
        "history_reset",
    }


def require_between(known: Folded, before: Folded, after: Folded) -> None:
    """Require of a reader inside of a step that it has each thing as it was, or as it will be."""
    arrived = after.messages[: len(known.messages)]
    assert known.messages in (before.messages, arrived), known.cursor
    assert known.queue in (before.queue, after.queue), known.cursor
    assert known.status in (before.status, after.status), known.cursor


async def test_at_every_cursor_a_reader_has_what_was_stored_at_that_version(town: Town) -> None:
    reads = PostgresStreamReads(town.pool)
    async with (
        asyncio.timeout(120),
        replica_in(town, "a", joins=False) as a,
        replica_in(town, "b") as b,
    ):
        chat_id = await a.create()
        were = {1: await stored(reads, chat_id)}

        async def remember(state: ChatState) -> None:
            were[state.snapshot_version] = await stored(reads, chat_id)

        a.after = remember
        lives = [a.subscribe(chat_id), b.subscribe(chat_id)]
        first = [await read_until(live, Folded(), 1) for live in lives]
        async with asyncio.TaskGroup() as tasks:
            living = tasks.create_task(live_and_edit(a, chat_id))
            readings = [
                tasks.create_task(recorded(live, known, living))
                for live, known in zip(lives, first, strict=True)
            ]
    for reading in readings:
        settled = Folded()
        for known in reading.result():
            target = int(known.cursor.split(".")[1])
            if known.is_settled_at is None:
                require_between(known, settled, were[target])
            else:
                settled = without_preview(known)
                assert settled == were[target], known.cursor
        assert {known.is_settled_at for known in reading.result()} >= {1, max(were)}


async def live_and_edit(a: Replica, chat_id: ChatId) -> int:
    """Let a chat live, and then replace what was asked in the middle of it."""
    await live_through(a, chat_id)
    await a.edit(chat_id, 7, "another question")
    return (await a.finish(chat_id, "another answer")).snapshot_version


async def recorded(call: Any, known: Folded, living: "asyncio.Task[int]") -> list[Folded]:
    """Return what a reader knew after each event, until a chat has lived."""
    found = [known]
    async with asyncio.TaskGroup() as tasks:
        while True:
            reading = tasks.create_task(call.read())
            while not reading.done():
                if living.done() and (found[-1].is_settled_at or 0) >= living.result():
                    reading.cancel()
                    return found
                awaited = (reading,) if living.done() else (reading, living)
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            found.append(fold(found[-1], reading.result().event))


async def parts_until(call: Any, known: Folded, preview: str) -> Folded:
    """Apply events until so much of the answer is shown."""
    while known.preview != preview:
        known = fold(known, (await call.read()).event)
    return known


async def test_a_reader_elsewhere_gets_the_live_parts_of_the_owner(town: Town) -> None:
    async with asyncio.timeout(60), replica_in(town, "a") as a, replica_in(town, "b") as b:
        chat_id = await a.create()
        episode = await a.episode(chat_id)
        episode.add(Role.ASSISTANT, 0, Text("before "))
        there = b.subscribe(chat_id)
        known = await parts_until(there, Folded(), "before ")
        episode.add(Role.ASSISTANT, 0, Text("after"))
        known = await parts_until(there, known, "before after")
        cut = known
        resumed = b.subscribe(chat_id, cut.cursor)
        state = await a.finish(chat_id, "before after")
        known = await read_until(there, known, state.snapshot_version)
        end = await read_until(resumed, cut, state.snapshot_version)
        await a.send(chat_id, "more?")
        episode = await a.episode(chat_id)
        episode.add(Role.ASSISTANT, 0, Text("yes"))
        known = await parts_until(there, known, "yes")
    assert end.messages == known.messages[:2]


async def test_readers_elsewhere_live_through_a_takeover_in_the_middle_of_an_answer(
    town: Town,
) -> None:
    async with asyncio.timeout(30), replica_in(town, "b") as b, replica_in(town, "c") as c:
        async with replica_in(town, "a") as a:
            chat_id = await a.create()
            readers = [b.subscribe(chat_id), c.subscribe(chat_id)]
            episode = await a.episode(chat_id)
            episode.add(Role.ASSISTANT, 0, Text("half an "))
            known = [await parts_until(reader, Folded(), "half an ") for reader in readers]
        await town.pool.execute("DELETE FROM chat.workers WHERE id = $1", a.worker_id)
        taken = await b.take_over(chat_id)
        episode = await b.episode(chat_id)
        episode.add(Role.ASSISTANT, 0, Text("a whole "))
        episode.add(Role.ASSISTANT, 0, Text("answer"))
        known = [
            await parts_until(reader, each, "a whole answer")
            for reader, each in zip(readers, known, strict=True)
        ]
        cursors = [each.cursor for each in known]
        state = await b.finish(chat_id, "a whole answer")
        for reader, each in zip(readers, known, strict=True):
            end = await read_until(reader, each, state.snapshot_version)
            assert without_preview(end) == await stored(PostgresStreamReads(town.pool), chat_id)
        for replica, cursor, each in zip((c, b), cursors, known, strict=True):
            resumed = replica.subscribe(chat_id, cursor)
            end = await read_until(resumed, each, state.snapshot_version)
            assert without_preview(end) == await stored(PostgresStreamReads(town.pool), chat_id)
    assert taken.generation_attempt == 2


async def test_a_retry_is_told_on_every_replica_before_the_preview_is_void(town: Town) -> None:
    async with asyncio.timeout(60), replica_in(town, "a") as a, replica_in(town, "b") as b:
        chat_id = await a.create()
        readers = [a.subscribe(chat_id), b.subscribe(chat_id)]
        episode = await a.episode(chat_id)
        episode.add(Role.ASSISTANT, 0, Text("never finished"))
        for reader in readers:
            await parts_until(reader, Folded(), "never finished")
        fence = fence_of(await a.chats.state(chat_id))
        await a.do(chat_id, RecordRetry(fence, Retry(1, 10, LATER, OOPS)))
        told = [
            [(await reader.read()).event.WhichOneof("kind") for _ in range(2)] for reader in readers
        ]
    assert told == [["retry", "preview_reset"]] * 2


async def test_a_hub_that_heard_nothing_reads_what_it_missed(town: Town) -> None:
    async with asyncio.timeout(60), replica_in(town, "a") as a, replica_in(town, "b") as b:
        chat_id = await a.create()
        there = b.subscribe(chat_id)
        known = await read_until(there, Folded(), 1)
        b.is_deaf = True
        await a.finish(chat_id, "one")
        await a.send(chat_id, "two")
        # Its own commit does not continue what it knows, so that it has to read.
        state = await b.finish(chat_id, "three")
        known = await read_until(there, known, state.snapshot_version)
        # Of this nobody tells it: the poll finds out.
        state = await a.send(chat_id, "four")
        known = await read_until(there, known, state.snapshot_version)
    assert [text for _, _, text in known.messages] == ["hello", "one", "two", "three", "four"]


async def test_a_long_history_arrives_whole_and_in_order(town: Town) -> None:
    async with asyncio.timeout(120), replica_in(town, "a") as a:
        chat_id = await a.create()
        texts = [f"{number} " + "x" * 20_000 for number in range(150)]
        await a.finish(chat_id, *texts[:140])
        await a.send(chat_id, "more")
        state = await a.finish(chat_id, *texts[140:])
        reader = a.subscribe(chat_id)
        events: list[event_pb2.ChatEvent] = []
        known = await read_until(reader, Folded(), state.snapshot_version, events)
        middle = fold_all(events[:70])
        resumed = a.subscribe(chat_id, middle.cursor)
        end = await read_until(resumed, middle, state.snapshot_version)
        expected = await stored(PostgresStreamReads(town.pool), chat_id)
    assert (known, end) == (expected, expected)


def fold_all(events: list[event_pb2.ChatEvent]) -> Folded:
    known = Folded()
    for event in events:
        known = fold(known, event)
    return known
