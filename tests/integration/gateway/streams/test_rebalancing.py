"""A chatd process that comes gets the streams of the chats that prefer it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.streams.event_source import Ending
from gateway.streams.frames import Frames
from gateway.streams.links import MOVE_BATCH, Links
from gateway.streams.subscription import LinkSubscription
from parley.api.chat.v1 import chat_pb2, event_pb2
from parley.api.chat.v1.stream_service_pb2 import OpenSubscription
from parley.clock import SystemClock
from parley.identity import Role, ServiceName, Signer, SigningKey, TrustFile, User, UserId
from parley.rpc import Address, Channels, connect
from parley.telemetry import InMemoryTelemetry
from support.gateway.fake_chatd import FakeChatd, FakeSubscription
from support.gateway.fake_chatd_server import serving

ANN = User(UserId("0191d1f0-0000-7000-8000-000000000001"), Role.MEMBER)


@dataclass(slots=True)
class Reading:
    """One reader: the frames it got, and how it ended."""

    frames: list[bytes] = field(default_factory=list)
    ended: Ending | None = None
    _something: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, count: int) -> None:
        """Wait for so many frames."""
        while len(self.frames) < count:
            self._something.clear()
            await self._something.wait()

    def take(self, kind: str, frame: bytes) -> None:
        self.frames.append(frame)
        self._something.set()

    def end(self, why: Ending) -> None:
        self.ended = why


@dataclass(slots=True)
class Gateway:
    """Links to two processes, of which some are known to live."""

    links: Links
    fakes: dict[Address, FakeChatd]
    live: set[Address]
    readings: dict[str, Reading] = field(default_factory=dict)

    async def open(self, chat_id: str) -> LinkSubscription:
        reading = self.readings[chat_id] = Reading()
        return await self.links.open(ANN, chat_id, reading, cursor="", after_id=0)

    async def until_opened(self, address: Address, count: int) -> list[FakeSubscription]:
        """Return the next subscriptions that a process gets."""
        return [await self.fakes[address].subscriptions.get() for _ in range(count)]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with two_processes(tmp_path) as links:
        yield links


@asynccontextmanager
async def two_processes(directory: Path) -> AsyncIterator[Gateway]:
    clock, key = SystemClock(), SigningKey.generate()
    trust_file = directory / "trust.json"
    TrustFile(trust_file).add_key(ServiceName.GATEWAY, key)
    signer = Signer(ServiceName.GATEWAY, key, clock)
    telemetry = InMemoryTelemetry("gateway").telemetry
    async with AsyncExitStack() as stack:
        fakes: dict[Address, FakeChatd] = {}
        for name in ("a", "b"):
            fake = FakeChatd()
            server = await stack.enter_async_context(
                serving(
                    fake,
                    directory / f"{name}.sock",
                    trust_file=trust_file,
                    clock=clock,
                    telemetry=telemetry,
                )
            )
            fakes[server.address] = fake
        channels = Channels(
            fakes,
            lambda address: connect(
                address, audience=ServiceName.CHATD, signer=signer, telemetry=telemetry
            ),
        )
        stack.push_async_callback(channels.close)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        live = set(fakes)
        links = Links(
            channels,
            signer,
            tasks=tasks,
            clock=clock,
            frames=Frames(lambda _: ""),
            is_live=live.__contains__,
        )
        stack.callback(links.close)
        yield Gateway(links, fakes, live)


def chats_for(gateway: Gateway, count: int) -> list[str]:
    """Return chats of Ann's that every process knows."""
    ids = [f"00000000-0000-0000-0000-{number:012}" for number in range(count)]
    for fake in gateway.fakes.values():
        fake.chats |= {id: chat_pb2.Chat(id=id, owner_id=ANN.id) for id in ids}
    return ids


def chat_of(subscription: FakeSubscription) -> str:
    assert isinstance(subscription.request, OpenSubscription)
    return subscription.request.chat_id


def waiting(cursor: str) -> event_pb2.ChatEvent:
    status = event_pb2.StatusEvent(status=chat_pb2.CHAT_STATUS_WAITING)
    return event_pb2.ChatEvent(cursor=cursor, status=status)


async def test_streams_move_to_the_process_that_came_and_go_on_where_they_were(
    gateway: Gateway,
) -> None:
    first, second = gateway.fakes
    gateway.live.remove(second)
    chats = chats_for(gateway, 2 * MOVE_BATCH + 50)
    async with asyncio.timeout(30):
        for chat_id in chats:
            await gateway.open(chat_id)
        for number, subscription in enumerate(await gateway.until_opened(first, len(chats))):
            subscription.send(waiting(f"{number + 1}.{number + 1}.1.1.0.0"))
        for reading in gateway.readings.values():
            await reading.until(1)

        gateway.live.add(second)
        await gateway.links.rebalance()
        movers = [id for id in chats if next(iter(gateway.links.preferred(id))) == second]
        moved = await gateway.until_opened(second, len(movers))

        assert sorted(map(chat_of, moved)) == movers
        for each in moved:
            number = chats.index(chat_of(each)) + 1
            assert each.request.cursor == f"{number}.{number}.1.1.0.0"
            each.send(waiting(f"{number}.{number + 1}.1.1.0.0"))
        for chat_id in movers:
            await gateway.readings[chat_id].until(2)
    assert MOVE_BATCH < len(movers) < len(chats)
    assert {reading.ended for reading in gateway.readings.values()} == {None}


async def test_nothing_moves_while_everybody_is_where_they_prefer(gateway: Gateway) -> None:
    chats = chats_for(gateway, 20)
    async with asyncio.timeout(30):
        routed = [await gateway.open(chat_id) for chat_id in chats]
        links = [each.link for each in routed]
        await gateway.links.rebalance()
        assert [each.link for each in routed] == links


async def test_calls_go_where_the_streams_are(gateway: Gateway) -> None:
    first, second = gateway.fakes
    for address in gateway.fakes:
        gateway.live.discard(address)
        others = [each for each in gateway.fakes if each != address]
        assert [next(iter(gateway.links.preferred(f"chat {n}"))) for n in range(20)] == others * 20
        gateway.live.add(address)
    assert {next(iter(gateway.links.preferred(f"chat {n}"))) for n in range(20)} == {first, second}


class Failing(Reading):
    """A reader that fails at its first event."""

    def take(self, kind: str, frame: bytes) -> None:
        raise RuntimeError("a bug")


async def test_a_reader_that_fails_ends_its_own_stream_and_nobody_elses(gateway: Gateway) -> None:
    first, second = gateway.fakes
    gateway.live.remove(second)
    bad, good = chats_for(gateway, 2)
    failing = Failing()
    async with asyncio.timeout(30):
        await gateway.links.open(ANN, bad, failing, cursor="", after_id=0)
        routed = await gateway.open(good)
        link = routed.link
        for subscription in await gateway.until_opened(first, 2):
            subscription.send(waiting("1.1.1.1.0.0"))
        await gateway.readings[good].until(1)
    assert failing.ended is Ending.GOING_AWAY
    assert (routed.link, gateway.readings[good].ended) == (link, None)
