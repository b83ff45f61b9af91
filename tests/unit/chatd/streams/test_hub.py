"""One hub and its readers, over reads that the test holds in its hands."""

from dataclasses import replace

from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import MessageId
from chatd.streams.rpc.subscription import WAITING_BYTES_MAX, Close, Subscription
from parley.api.chat.v1.event_pb2 import ChatEvent
from support.chatd.streams.held_hubs import CHAT, FIRST, next_turn, said, settle, staged


async def until(subscription: Subscription, messages: int) -> list[ChatEvent]:
    """Take events until so many messages came."""
    events: list[ChatEvent] = []
    while sum(event.HasField("message") for event in events) < messages:
        taken = [ChatEvent.FromString(each) for each in subscription.next_events(1 << 30)]
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
        stage.hubs.on_notice(CHAT, 2)
        await settle()
        stage.commit(2)
        stage.commit(3)
        stage.reads.may_answer.set()
        events = await until(reader, 2)
        await settle()
        stage.hubs.on_notice(CHAT, 3)
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
        stage.hubs.on_notice(CHAT, 2)
        await settle()
        assert numbers(await until(reader, 1)) == [2]
        stage.reads.state = replace(FIRST, snapshot_version=3, history_version=3)
        stage.hubs.on_notice(CHAT, 3)
        events = await until(reader, 1)
        await settle()
        events += [ChatEvent.FromString(each) for each in reader.next_events(1 << 30)]
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
        stage.hubs.on_notice(CHAT, 999)
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
        stage.hubs.on_notice(CHAT, 2)
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
            other.next_events(1 << 30)
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
