"""One hub and its readers, over reads that the test holds in its hands."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from chatd.domain.chat import (
    ChatId,
    ChatState,
    Message,
    MessageId,
    NewMessage,
    Role,
    Status,
    WorkerId,
)
from chatd.domain.parts import Text
from chatd.domain.transitions import fence_of
from chatd.engine.live import LiveChats
from chatd.rpc.streams.hubs import Hubs, NoRelays
from chatd.rpc.streams.subscription import WAITING_BYTES_MAX, Close, Subscription
from chatd.store.following import Following
from parley.api.chat.v1.event_pb2 import ChatEvent
from parley.clock import FakeClock
from parley.clock.fake import EPOCH

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
FIRST = ChatState(CHAT, Status.RUNNING, 1, 1, 1, MessageId(2), worker_id=WORKER)


def said(number: int, revision: int, *, is_deleted: bool = False) -> Message:
    return Message(
        MessageId(number),
        revision,
        Role.ASSISTANT,
        (Text(f"message {number}"),),
        "",
        EPOCH,
        is_deleted=is_deleted,
    )


@dataclass(slots=True)
class HeldReads:
    """Answers from memory, when the test lets it."""

    state: ChatState = FIRST
    messages: list[Message] = field(default_factory=lambda: [said(1, 1)])
    reads: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def changes(
        self, chat_id: ChatId, after: int, *, limit: int, with_deletions: bool
    ) -> Following | None:
        self.reads += 1
        # As the database: one look at everything, whenever the answer arrives.
        state, messages = self.state, tuple(self.messages)
        await self.may_answer.wait()
        changed = [each for each in messages if each.revision > after]
        if not after:
            changed = [each for each in changed if not each.is_deleted]
        deleted = max((each.revision for each in messages if each.is_deleted), default=0)
        return Following(
            state,
            0,
            (),
            (),
            tuple(changed[-limit:]),
            is_complete=len(changed) <= limit,
            deleted_version=deleted if with_deletions else None,
        )

    async def stretch(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        self.reads += 1
        wanted = [
            each
            for each in self.messages
            if each.id > behind_id and after < each.revision <= upto and not each.is_deleted
        ]
        return tuple(wanted[:limit])

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        return dict.fromkeys(chat_ids, self.state.snapshot_version)


class Stage:
    """A hub's surroundings."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.reads = HeldReads()
        self.live = LiveChats()
        self.clock = FakeClock()
        self.hubs = Hubs(self.reads, self.live, relays=NoRelays(), tasks=tasks, clock=self.clock)

    def follow(self, cursor: str = "") -> Subscription:
        return self.hubs.follow(CHAT, cursor, 0, lambda _: None)

    def commit(self, number: int) -> None:
        """Let this process write one more message."""
        before = self.reads.state
        after = replace(
            before,
            snapshot_version=number,
            history_version=number,
            next_message_id=MessageId(number + 1),
        )
        self.reads.state = after
        self.reads.messages.append(said(number, number))
        new = NewMessage(Role.ASSISTANT, (Text(f"message {number}"),))
        self.hubs.appended(before, after, (new,), EPOCH)
        self.hubs.moved(after)


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        stage = Stage(tasks)
        yield stage
        stage.hubs.close()


async def until(subscription: Subscription, messages: int) -> list[ChatEvent]:
    """Take events until so many messages came."""
    events: list[ChatEvent] = []
    while sum(event.HasField("message") for event in events) < messages:
        taken = [ChatEvent.FromString(each) for each in subscription.take(1 << 30)]
        subscription.confirm(1 << 30)
        events += taken
        await next_turn()
    return events


def numbers(events: list[ChatEvent]) -> list[int]:
    return [event.message.id for event in events if event.HasField("message")]


async def test_a_hundred_readers_cost_one_read_and_a_commit_costs_none() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        readers = [stage.follow() for _ in range(100)]
        for reader in readers:
            assert numbers(await until(reader, 1)) == [1]
        await settle()
        for number in range(2, 12):
            stage.commit(number)
        for reader in readers:
            assert numbers(await until(reader, 10)) == list(range(2, 12))
        late = stage.follow()
        assert numbers(await until(late, 11)) == list(range(1, 12))
    assert stage.reads.reads == 1


async def test_a_commit_that_meets_a_read_on_its_way_is_sent_once() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader = stage.follow()
        await until(reader, 1)
        await settle()
        stage.reads.may_answer.clear()
        # The read begins, and has seen the chat before the commit that comes before its answer.
        stage.hubs.heard(CHAT, 2)
        await settle()
        stage.commit(2)
        stage.commit(3)
        stage.reads.may_answer.set()
        events = await until(reader, 2)
        await settle()
        stage.hubs.heard(CHAT, 3)
        stage.commit(4)
        events += await until(reader, 1)
    assert numbers(events) == [2, 3, 4]


async def test_a_commit_during_the_first_read_is_neither_lost_nor_sent_twice() -> None:
    async with staged() as stage:
        reader = stage.follow()
        await settle()
        stage.commit(2)
        stage.reads.may_answer.set()
        events = await until(reader, 2)
        stage.commit(3)
        events += await until(reader, 1)
    assert numbers(events) == [1, 2, 3]


async def test_a_message_newer_than_the_state_it_was_read_with_waits_for_its_state() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader = stage.follow()
        await until(reader, 1)
        await settle()
        # What the old streams did: the history was read after the state.
        stage.reads.state = replace(FIRST, snapshot_version=2, history_version=2)
        stage.reads.messages += [said(2, 2), said(3, 3)]
        stage.hubs.heard(CHAT, 2)
        await settle()
        assert numbers(await until(reader, 1)) == [2]
        stage.reads.state = replace(FIRST, snapshot_version=3, history_version=3)
        stage.hubs.heard(CHAT, 3)
        events = await until(reader, 1)
        await settle()
        events += [ChatEvent.FromString(each) for each in reader.take(1 << 30)]
    assert numbers(events) == [3]


async def test_a_hub_that_missed_a_version_reads_instead_of_guessing() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader = stage.follow()
        await until(reader, 1)
        await settle()
        stage.reads.messages.append(said(2, 2))
        stage.reads.state = replace(FIRST, snapshot_version=2, next_message_id=MessageId(3))
        stage.commit(3)
        events = await until(reader, 2)
    assert numbers(events) == [2, 3]
    assert stage.reads.reads == 2


async def test_more_messages_than_are_kept_are_caught_up_with() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader = stage.follow()
        await until(reader, 1)
        await settle()
        stage.reads.messages += [said(number, number) for number in range(2, 1000)]
        stage.reads.state = replace(FIRST, snapshot_version=999, history_version=999)
        stage.hubs.heard(CHAT, 999)
        events = await until(reader, 998)
    assert numbers(events) == list(range(2, 1000))


async def test_a_deletion_voids_the_history_of_every_reader() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader = stage.follow()
        await until(reader, 1)
        await settle()
        stage.reads.messages = [said(1, 2, is_deleted=True), said(2, 2)]
        stage.reads.state = replace(FIRST, snapshot_version=2, history_version=2)
        stage.hubs.heard(CHAT, 2)
        events = await until(reader, 1)
    assert [event.WhichOneof("kind") for event in events][:2] == ["history_reset", "message"]
    assert numbers(events) == [2]


async def test_a_reader_that_takes_nothing_loses_its_place_and_nothing_grows() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        reader, other = stage.follow(), stage.follow()
        await until(reader, 1)
        await until(other, 1)
        await settle()
        episode = stage.live.open(CHAT, fence_of(stage.reads.state))
        for _ in range(30):
            episode.add(Role.ASSISTANT, 0, Text("x" * 100_000))
            other.take(1 << 30)
            assert reader.waiting_bytes <= WAITING_BYTES_MAX
        await settle()
    assert (reader.closed, reader.waiting) == (Close.RESYNC, 0)
    assert other.closed is Close.GOING_AWAY
    assert stage.hubs.drops.events >= 10


async def test_the_last_reader_takes_its_hub_along() -> None:
    async with staged() as stage:
        stage.reads.may_answer.set()
        readers = [stage.follow(), stage.follow()]
        await until(readers[1], 1)
        stage.hubs.leave(CHAT, readers[0])
        assert len(stage.hubs) == 1
        stage.hubs.leave(CHAT, readers[1])
        assert len(stage.hubs) == 0


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(20):
        await next_turn()


async def next_turn() -> None:
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned
