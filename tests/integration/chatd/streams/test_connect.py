"""The shared stream: many subscriptions, each for its user, none in the way of another."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from chatd.chats.rpc.bounding import MESSAGE_BYTES_MAX
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.domain.requests import Reader
from chatd.streams.rpc import access, subscription
from chatd.streams.store.chat_reads import (
    SELECT_FOLLOWED,
    SELECT_STILL_READABLE,
    SELECT_VERSIONS,
    ChatReadRequest,
    PostgresStreamReads,
)
from parley.api.chat.v1 import event_pb2
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.postgres import Pool
from support.chatd.streams.folding import Folded, fold
from support.chatd.streams.stream_replicas import ANN, BOB, Replica, Town, replica_in, town_of
from support.database.counted_pool import CountedPool

SHARE = "INSERT INTO chat.chat_shares VALUES ($1, 'user', $2, now())"


@pytest.fixture
async def town(pool: Pool, tmp_path: Path) -> AsyncIterator[Town]:
    async with town_of(pool, tmp_path) as shared:
        yield shared


@pytest.fixture
async def a(town: Town) -> AsyncIterator[Replica]:
    async with replica_in(town, "a") as replica:
        yield replica


class Gateway:
    """The other end of a shared stream."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.call = replica.connect()
        self.got: dict[int, list[event_pb2.ChatEvent]] = {}
        self.closed: dict[int, int] = {}
        self.is_open: set[int] = set()
        self.answers: dict[int, api.TunnelledAnswer] = {}

    async def ask(self, **request: Any) -> None:
        await self.call.write(api.ConnectRequest(**request))

    async def open(self, number: int, chat_id: ChatId, *, reader: Owner = ANN, **more: Any) -> None:
        token = self._replica.token(reader)
        await self.ask(
            open=api.OpenSubscription(
                subscription_id=number, chat_id=chat_id, authorization=token, **more
            )
        )

    async def read(self) -> api.ConnectResponse:
        frame: api.ConnectResponse = await self.call.read()
        self.answers |= {answer.call_id: answer for answer in frame.answers}
        for delivery in frame.deliveries:
            self.is_open.add(delivery.subscription_id)
            self.got.setdefault(delivery.subscription_id, []).extend(delivery.events)
            if delivery.HasField("closed"):
                self.closed[delivery.subscription_id] = delivery.closed.reason
        return frame

    async def until(self, number: int, kind: str, count: int = 1) -> list[event_pb2.ChatEvent]:
        """Read until a subscription has so many events of a kind."""
        while True:
            found = [e for e in self.got.get(number, ()) if e.WhichOneof("kind") == kind]
            if len(found) >= count:
                return found
            await self.read()

    async def until_closed(self, number: int) -> int:
        while number not in self.closed:
            await self.read()
        return self.closed[number]


async def test_one_stream_carries_the_chats_of_many_readers(a: Replica) -> None:
    chats = [await a.create(f"hello {number}") for number in range(50)]
    async with asyncio.timeout(20):
        gateway = Gateway(a)
        for number, chat_id in enumerate(chats):
            await gateway.open(number, chat_id)
        for number in range(len(chats)):
            await gateway.until(number, "status")
        for chat_id in chats:
            (await a.episode(chat_id)).add(Role.ASSISTANT, 0, Text("word"))
        for number, chat_id in enumerate(chats):
            (part,) = await gateway.until(number, "message_part")
            assert part.message_part.part.text.text == "word"
            await a.finish(chat_id, f"answer {number}")
        for number in range(len(chats)):
            messages = await gateway.until(number, "message", 2)
            assert messages[-1].message.content[0].text.text == f"answer {number}"
        gateway.call.cancel()


async def test_a_reader_at_the_end_of_a_quiet_chat_learns_that_it_is_open(a: Replica) -> None:
    chat_id = await a.create()
    async with asyncio.timeout(10):
        gateway = Gateway(a)
        await gateway.open(1, chat_id)
        status = (await gateway.until(1, "status"))[0]
        await gateway.open(2, chat_id, cursor=status.cursor)
        while 2 not in gateway.is_open:
            await gateway.read()
        gateway.call.cancel()
    assert gateway.got[2] == []


async def test_somebody_elses_chat_and_one_that_is_not_there_look_the_same(a: Replica) -> None:
    chat_id = await a.create()
    async with asyncio.timeout(10):
        gateway = Gateway(a)
        await gateway.open(1, chat_id, reader=BOB)
        await gateway.open(2, ChatId("00000000-0000-0000-0000-000000000009"))
        await gateway.open(3, ChatId("nonsense"))
        await gateway.ask(
            open=api.OpenSubscription(subscription_id=4, chat_id=chat_id, authorization="forged")
        )
        await gateway.ask(open=api.OpenSubscription(subscription_id=5, chat_id=chat_id, relay=True))
        reasons = [await gateway.until_closed(number) for number in range(1, 6)]
        gateway.call.cancel()
    assert reasons == [api.CLOSE_REASON_NOT_FOUND] * 5


async def test_a_share_that_is_taken_back_ends_the_stream_within_five_seconds(
    town: Town, a: Replica
) -> None:
    chat_id = await a.create()
    await town.pool.execute(SHARE, chat_id, BOB.id)
    async with asyncio.timeout(15):
        gateway = Gateway(a)
        await gateway.open(1, chat_id, reader=BOB)
        await gateway.open(2, chat_id)
        await gateway.until(1, "status")
        await gateway.until(2, "status")
        await town.pool.execute("DELETE FROM chat.chat_shares")
        began = town.clock.monotonic()
        assert await gateway.until_closed(1) == api.CLOSE_REASON_NOT_FOUND
        took_s = town.clock.monotonic() - began
        await a.finish(chat_id, "secret")
        await gateway.until(2, "message", 2)
        gateway.call.cancel()
    assert took_s < 5
    assert len(gateway.got[1]) == 2


async def test_whoever_leaves_a_group_loses_the_stream_that_it_was_shared_with(
    town: Town, a: Replica
) -> None:
    group_id = "00000000-0000-0000-0000-0000000000f1"
    chat_id = await a.create()
    await town.pool.execute(SHARE.replace("user", "group"), chat_id, group_id)
    town.groups.groups[BOB.id] = (group_id,)
    async with asyncio.timeout(15):
        gateway = Gateway(a)
        await gateway.open(1, chat_id, reader=BOB)
        await gateway.open(2, chat_id)
        await gateway.until(1, "status")
        await gateway.until(2, "status")
        town.groups.groups.clear()
        began = town.clock.monotonic()
        assert await gateway.until_closed(1) == api.CLOSE_REASON_NOT_FOUND
        took_s = town.clock.monotonic() - began
        await a.finish(chat_id, "secret")
        await gateway.until(2, "message", 2)
        gateway.call.cancel()
    assert took_s < 5
    assert len(gateway.got[1]) == 2


async def test_whoever_does_not_prove_anew_who_reads_is_sent_away(
    a: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "AUTHORIZED_S", 0.5)
    chat_id = await a.create()
    async with asyncio.timeout(15):
        gateway = Gateway(a)
        await gateway.open(1, chat_id)
        await gateway.until(1, "status")
        monkeypatch.setattr(access, "AUTHORIZED_S", 60.0)
        await gateway.open(2, chat_id)
        await gateway.ask(renew=api.RenewSubscription(subscription_id=2, authorization=a.token()))
        assert await gateway.until_closed(1) == api.CLOSE_REASON_INTERNAL
        await gateway.until(2, "status")
        gateway.call.cancel()
    assert 2 not in gateway.closed


async def test_a_process_that_stops_says_so_on_every_subscription(a: Replica) -> None:
    chat_id = await a.create()
    async with asyncio.timeout(10):
        gateway = Gateway(a)
        await gateway.open(1, chat_id)
        await gateway.until(1, "status")
        a.hubs.close()
        assert await gateway.until_closed(1) == api.CLOSE_REASON_GOING_AWAY
        await gateway.open(2, chat_id)
        assert await gateway.until_closed(2) == api.CLOSE_REASON_GOING_AWAY
        gateway.call.cancel()


async def test_a_reader_that_is_too_slow_is_sent_away_and_the_others_are_not(a: Replica) -> None:
    chat_id = await a.create()
    async with asyncio.timeout(30):
        slow, quick = Gateway(a), Gateway(a)
        await slow.open(1, chat_id)
        await slow.until(1, "status")
        await quick.open(1, chat_id)
        await quick.until(1, "status")
        episode = await a.episode(chat_id)
        # More than the window of a connection and a line hold; only one of them reads.
        for number in range(1, 41):
            episode.add(Role.ASSISTANT, 0, Text("x" * 100_000))
            await quick.until(1, "message_part", number)
        assert await slow.until_closed(1) == api.CLOSE_REASON_RESYNC
        assert a.hubs.drops.events > 0
        slow.call.cancel()
        quick.call.cancel()
    seqs = [event.message_part.seq for event in quick.got[1] if event.HasField("message_part")]
    assert seqs == list(range(1, 41))


async def test_a_long_history_goes_on_only_as_fast_as_it_is_confirmed(a: Replica) -> None:
    chat_id = await a.create()
    state = await a.finish(chat_id, *("y" * 50_000 for _ in range(60)))
    async with asyncio.timeout(30):
        gateway = Gateway(a)
        await gateway.open(1, chat_id)
        await gateway.until(1, "message", 4)
        # Another subscription is served although the first one is stuck.
        await gateway.open(2, chat_id, after_id=60)
        await gateway.until(2, "status")
        stuck = sum(event.ByteSize() for event in gateway.got[1])
        assert stuck < subscription.UNCONFIRMED_BYTES_MAX + 60_000
        confirmed = 0
        while len(gateway.got[1]) < 62:
            size = sum(event.ByteSize() for event in gateway.got[1])
            confirming = api.ConfirmDelivery(subscription_id=1, bytes=size - confirmed)
            confirmed = size
            await gateway.ask(confirm=confirming)
            await gateway.read()
        gateway.call.cancel()
    known = Folded()
    for event in gateway.got[1]:
        known = fold(known, event)
    assert (len(known.messages), known.is_settled_at) == (61, state.snapshot_version)


async def test_the_processes_are_told_of_and_again_when_they_change(town: Town, a: Replica) -> None:
    async with asyncio.timeout(15):
        call = a.streams.WatchReplicas(api.WatchReplicasRequest())
        first = await call.read()
        async with replica_in(town, "b") as b:
            second = await call.read()
        call.cancel()
    assert [each.worker_id for each in first.replicas] == [a.worker_id]
    assert {each.worker_id for each in second.replicas} == {a.worker_id, b.worker_id}


async def test_openings_take_one_statement_each_at_most_and_none_for_the_owner_again(
    pool: Pool, tmp_path: Path
) -> None:
    counted = CountedPool(pool)
    async with (
        asyncio.timeout(20),
        town_of(cast(Pool, counted), tmp_path) as town,
        replica_in(town, "a") as a,
    ):
        chats = [await a.create(f"hello {number}") for number in range(50)]
        await pool.execute(SHARE, chats[0], BOB.id)
        gateway = Gateway(a)
        counted.statements.clear()
        for number, chat_id in enumerate(chats):
            await gateway.open(number, chat_id)
        for number in range(len(chats)):
            await gateway.until(number, "status")
        assert counted.statements.count(SELECT_FOLLOWED) <= len(chats)
        counted.statements.clear()
        await gateway.open(100, chats[0])
        await gateway.until(100, "status")
        assert counted.statements.count(SELECT_FOLLOWED) == 0
        await gateway.open(101, chats[0], reader=BOB)
        await gateway.until(101, "status")
        assert counted.statements.count(SELECT_FOLLOWED) == 1
        await gateway.open(102, chats[1], reader=BOB)
        assert await gateway.until_closed(102) == api.CLOSE_REASON_NOT_FOUND
        gateway.call.cancel()
    assert set(counted.statements) <= {SELECT_FOLLOWED, SELECT_VERSIONS, SELECT_STILL_READABLE}


async def test_one_statement_answers_many_each_as_its_reader_may(pool: Pool, a: Replica) -> None:
    own, shared, grouped = [await a.create(f"chat {number}") for number in range(3)]
    group = "00000000-0000-0000-0000-0000000000cc"
    await pool.execute(SHARE, shared, BOB.id)
    await pool.execute(
        "INSERT INTO chat.chat_shares VALUES ($1, 'group', $2, now())", grouped, group
    )
    reads = PostgresStreamReads(pool)
    ann, bob, member = Reader(ANN.id), Reader(BOB.id), Reader(BOB.id, (group,))
    asked = [
        ChatReadRequest(chat, reader=who)
        for who in (ann, bob, member)
        for chat in (own, shared, grouped)
    ]
    gone = ChatReadRequest(ChatId("00000000-0000-0000-0000-000000000009"))
    found = await reads.read(
        [*asked, gone, ChatReadRequest(own, limit=5), ChatReadRequest(own, after=1, limit=5)]
    )
    assert [each is not None and each.owner_id == ANN.id for each in found] == [
        *(True, True, True),
        *(False, True, False),
        *(False, True, True),
        False,
        *(True, True),
    ]
    assert [len(each.messages) for each in found if each is not None] == [0] * 6 + [1, 0]


def carried(number: int, replica: Replica, method: str, timeout_ms: int = 5000) -> Any:
    """Return a call to be carried, whose message is empty."""
    headers = {"authorization": f"Bearer {replica.token(ANN)}"}
    return api.TunnelledCall(
        call_id=number, method=method, headers=headers, timeout_ms=timeout_ms, request=b""
    )


async def test_calls_travel_with_the_events_and_are_answered_by_their_ids(a: Replica) -> None:
    chat_id = await a.create()
    async with asyncio.timeout(10):
        gateway = Gateway(a)
        await gateway.open(1, chat_id)
        calls = [carried(number, a, "/nobody.Knows/This") for number in range(300)]
        await gateway.ask(calls=api.TunnelledCalls(calls=calls))
        await gateway.until(1, "status")
        while len(gateway.answers) < len(calls):
            await gateway.read()
        gateway.call.cancel()
    assert sorted(gateway.answers) == list(range(300))
    assert {answer.status for answer in gateway.answers.values()} == {12}  # UNIMPLEMENTED


async def test_a_call_of_no_id_is_abandoned_without_harm(a: Replica) -> None:
    async with asyncio.timeout(10):
        gateway = Gateway(a)
        await gateway.ask(abandon=api.CancelTunnelledCall(call_id=77))
        await gateway.ask(calls=api.TunnelledCalls(calls=[carried(1, a, "/nobody.Knows/This")]))
        while not gateway.answers:
            await gateway.read()
        gateway.call.cancel()
    assert list(gateway.answers) == [1]


@pytest.mark.parametrize("megabytes", [3, 14])
async def test_a_message_larger_than_any_frame_harms_no_reader(a: Replica, megabytes: int) -> None:
    large, other = await a.create("a long story please"), await a.create()
    async with asyncio.timeout(30):
        gateway = Gateway(a)
        await gateway.open(1, large)
        await gateway.open(2, other)
        await gateway.until(1, "status")
        await gateway.until(2, "status")
        await a.finish(large, "once " * (megabytes * 200_000) + "The end.")
        told = (await gateway.until(1, "message", 2))[-1].message.content[0].text.text
        await a.finish(other, "short")
        await gateway.until(2, "message", 2)
        await gateway.open(3, large)
        again = (await gateway.until(3, "message", 2))[-1].message.content[0].text.text
        gateway.call.cancel()
    assert told == again
    assert told.startswith("once once")
    assert told.endswith("The end.")
    assert len(told) <= MESSAGE_BYTES_MAX
    assert gateway.closed == {}
