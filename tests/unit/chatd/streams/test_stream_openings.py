"""What it takes to let readers in: statements are counted here, however many come at once."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Status
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.hub.reads import BATCH, READ_TRIES, STATEMENTS_AT_ONCE
from chatd.streams.rpc.access import CHECK_S, Access
from chatd.streams.rpc.subscription import Close
from chatd.streams.store.chat_reads import ChatReadRequest
from parley.api.chat.v1.event_pb2 import ChatEvent
from parley.postgres import DatabaseUnavailable, PoolExhausted
from parley.tasks import BackgroundTasks
from support.chatd.streams.held_hubs import ANN, CHAT, FIRST, Stage, settle, staged
from support.chatd.users.fixed_users import KnownGroups
from support.host.supervised import supervision

BOB = Reader(OwnerId("00000000-0000-0000-0000-00000000000b"))
CROWD = 500


def chat_number(number: int) -> ChatId:
    return ChatId(f"00000000-0000-0000-0000-{number:012}")


def with_history(stage: Stage) -> list[ChatReadRequest]:
    return [asked for asked in stage.reads.asked if asked.limit]


async def test_an_opening_takes_one_statement_and_tells_everything() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader = await stage.open()
        await settle()
        told = [
            ChatEvent.FromString(each).WhichOneof("kind") for each in reader.next_events(1 << 20)
        ]
    assert told == ["message", "status"]
    assert stage.reads.reads == 1


async def test_a_crowd_that_opens_at_once_takes_few_statements() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        opening = [tasks.create_task(stage.open(chat_number(each))) for each in range(CROWD)]
        await settle()
        assert stage.reads.reads == STATEMENTS_AT_ONCE
        stage.reads.may_answer.set()
        readers = [await each for each in opening]
        await settle()
        assert all(reader.closed is None and reader.waiting == 2 for reader in readers)
    assert stage.reads.reads == math.ceil(CROWD / BATCH)


async def test_the_owner_of_a_chat_that_is_followed_is_let_in_without_a_statement() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        await stage.open()
        await settle()
        others = [await stage.open() for _ in range(100)]
        await settle()
        assert all(reader.waiting == 2 for reader in others)
    assert stage.reads.reads == 1


async def test_nobody_is_let_into_a_followed_chat_that_may_be_gone() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        await stage.open()
        await settle()
        stage.reads.readers = frozenset()
        # As for a deletion: a version that this process wrote, and nothing in it that is known.
        stage.hubs.state_changed(replace(FIRST, snapshot_version=2, status=Status.WAITING))
        await refuse(stage, ANN)
        await settle()


async def test_a_guest_is_asked_for_even_if_the_chat_is_followed() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        await stage.open()
        await settle()
        with pytest.raises(ChatNotFound):
            await stage.open(reader=BOB)
        stage.reads.readers |= {BOB}
        assert (await stage.open(reader=BOB)).closed is None
    assert stage.reads.reads == 3
    assert len(with_history(stage)) == 1


async def test_many_readers_of_one_chat_have_its_history_read_once() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        stage.reads.readers |= {BOB}
        opening = [tasks.create_task(stage.open(reader=who)) for who in [ANN, BOB] * 50]
        await settle()
        stage.reads.may_answer.set()
        readers = [await each for each in opening]
        await settle()
        assert all(reader.waiting == 2 for reader in readers)
    assert stage.reads.reads == math.ceil(100 / BATCH)
    assert len(with_history(stage)) == 1


async def test_nobody_learns_from_the_first_who_is_refused() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        refused = tasks.create_task(refuse(stage, BOB))
        opening = tasks.create_task(stage.open())
        await settle()
        stage.reads.may_answer.set()
        await refused
        reader = await opening
        await settle()
        assert (reader.closed, reader.waiting) == (None, 2)
    assert len(stage.hubs) == 1


async def refuse(stage: Stage, reader: Reader) -> None:
    with pytest.raises(ChatNotFound):
        await stage.open(reader=reader)


async def test_a_refused_reader_leaves_no_hub_behind() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        await refuse(stage, BOB)
        assert len(stage.hubs) == 0


async def test_nobody_reads_for_those_who_gave_up_waiting() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        under_way = BATCH * STATEMENTS_AT_ONCE
        opening = [tasks.create_task(stage.open(chat_number(each))) for each in range(CROWD)]
        await settle()
        for task in opening[under_way:]:
            task.cancel()
        await settle()
        stage.reads.may_answer.set()
        await asyncio.wait(opening)
        assert len(stage.hubs) == under_way
    assert stage.reads.reads == STATEMENTS_AT_ONCE


async def test_what_is_committed_while_a_reader_is_let_in_reaches_it() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        opening = tasks.create_task(stage.open())
        await settle()
        stage.commit(2)
        stage.reads.may_answer.set()
        reader = await opening
        await settle()
        events = [ChatEvent.FromString(each) for each in reader.next_events(1 << 20)]
    assert [each.message.id for each in events if each.HasField("message")] == [1, 2]


async def test_what_is_wrong_with_one_chat_is_no_concern_of_the_others() -> None:
    bad = chat_number(3)

    def failing(asked: Sequence[ChatReadRequest]) -> Exception | None:
        return KeyError("no such part") if any(each.chat_id == bad for each in asked) else None

    async def is_opened(number: int) -> bool:
        try:
            return (await stage.open(chat_number(number))).closed is None
        except KeyError:
            return False

    async with staged() as stage, asyncio.TaskGroup() as tasks:
        stage.reads.failing = failing
        stage.reads.may_answer.set()
        opening = [tasks.create_task(is_opened(number)) for number in range(5)]
        assert [await each for each in opening] == [True, True, True, False, True]


async def test_a_busy_database_makes_openings_wait_and_fails_none() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        failures = iter([PoolExhausted(5.0)] * (READ_TRIES - 1))
        stage.reads.failing = lambda asked: next(failures, None)
        stage.reads.may_answer.set()
        opening = tasks.create_task(stage.open())
        for _ in range(READ_TRIES - 1):
            stage.clock.advance(await stage.clock.until_sleeping())
        assert (await opening).closed is None


async def test_a_database_that_stays_away_ends_an_opening() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        stage.reads.failing = lambda asked: DatabaseUnavailable("gone")
        opening = tasks.create_task(unavailable(stage))
        for _ in range(READ_TRIES - 1):
            stage.clock.advance(await stage.clock.until_sleeping())
        await opening
        assert len(stage.hubs) == 0


async def unavailable(stage: Stage) -> None:
    with pytest.raises(DatabaseUnavailable):
        await stage.open()


async def test_all_guests_together_are_asked_for_again_with_one_statement() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        stage.reads.may_answer.set()
        stage.reads.readers |= {BOB}
        access = Access(stage.hubs, stage.reads, KnownGroups(), stage.clock)
        readers = [
            await access.open(
                chat_number(number), who.id, cursor="", after_id=0, wake=lambda _: None
            )
            for number in range(CROWD)
            for who in (ANN, BOB)
        ]
        await settle()
        reads_before = stage.reads.reads
        checking = tasks.create_task(access.run())
        stage.reads.readers -= {BOB}
        await stage.clock.until_sleeping()
        stage.clock.advance(CHECK_S)
        await settle()
        checking.cancel()
        assert {reader.closed for reader in readers[::2]} == {None}
        assert {reader.closed for reader in readers[1::2]} == {Close.NOT_FOUND}
    assert stage.reads.reads - reads_before == 1


async def test_a_chat_that_cannot_be_read_for_an_unexpected_reason_ends_only_its_readers() -> None:
    async with asyncio.timeout(30), BackgroundTasks(supervision()) as tasks:
        stage = Stage(tasks)
        stage.reads.may_answer.set()
        other = await stage.open(chat_number(7))
        reader = await stage.open()
        await settle()

        def failing(asked: Sequence[ChatReadRequest]) -> Exception | None:
            return RuntimeError("a bug") if CHAT in [each.chat_id for each in asked] else None

        stage.reads.failing = failing
        stage.hubs.on_notice(CHAT, 2)
        late = stage.follow("nothing that is a cursor of it")
        await settle()
        assert (reader.closed, other.closed) == (Close.INTERNAL, None)
        assert late.closed is Close.RESYNC
        stage.hubs.close()
