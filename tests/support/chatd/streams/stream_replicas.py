"""Several chatd processes in one, each with its own hubs and socket, on one database."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.domain.commands import (
    Command,
    EditMessage,
    FinishInterruption,
    FinishTurn,
    SendMessage,
)
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.errors import DOMAIN, ERRORS
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, QueuedMessageId, WorkerId
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.engine.live import Episode, LiveChats
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.access import Access
from chatd.streams.rpc.feeds import Feeds
from chatd.streams.rpc.relay_source import RelaySource
from chatd.streams.rpc.relays import PeerRelays
from chatd.streams.rpc.replicas import ReplicaChannels, ReplicaWatch, know_replicas
from chatd.streams.rpc.requests import Streams
from chatd.streams.rpc.servicer import StreamServicer
from chatd.streams.store.chat_reads import PostgresStreamReads
from chatd.streams.store.feeds import PostgresFeeds
from chatd.turns.store.workers import PostgresWorkers
from chatd.workers.domain import SweepLimits
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceStub
from parley.clock import SystemClock
from parley.identity import (
    Guard,
    InMemoryRevocations,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
    User,
    UserId,
)
from parley.identity import Role as UserRole
from parley.postgres import Pool, Session
from parley.rpc import (
    Address,
    Channels,
    Registration,
    TunnelledMethods,
    acting_for,
    connect,
    serve,
)
from parley.telemetry import InMemoryTelemetry
from support.chatd.users.fixed_users import KnownGroups
from support.database.conflicts import RETRIES

ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
BOB = Owner(OwnerId("00000000-0000-0000-0000-00000000000b"), "member")
INSERT_WORKER = """
    INSERT INTO chat.workers (id, address, is_draining, lease_until, started_at, is_quarantine)
    VALUES ($1, $2, false, now() + interval '1 day', now(), $3)
"""


@dataclass(frozen=True, slots=True)
class Town:
    """What all processes share."""

    pool: Pool
    directory: Path
    clock: SystemClock
    guard: Guard
    gateway: Signer
    chatd: Signer
    replicas: "list[Replica]" = field(default_factory=list)
    groups: KnownGroups = field(default_factory=KnownGroups)

    def tell(self, teller: "Replica", state: ChatState) -> None:
        """Let every other process hear of a commit."""
        for replica in self.replicas:
            if replica is not teller and not replica.is_deaf:
                replica.hubs.on_notice(state.chat_id, state.snapshot_version)


@dataclass(slots=True, eq=False)
class Replica:
    """One process."""

    town: Town
    worker_id: WorkerId
    live: LiveChats
    hubs: Hubs
    access: Access
    chats: PostgresChats
    workers: PostgresWorkers
    streams: Any
    channel: Any
    is_deaf: bool = False
    after: Callable[[ChatState], Awaitable[None]] | None = None
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def create(self, text: str = "hello", owner: Owner = ANN) -> ChatId:
        """Create a chat that this process runs."""
        chat_id = ChatId(str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.worker_id} {text}")))
        message = NewMessage(Role.USER, (Text(text),), owner.id)
        await self.chats.add(
            NewChat(chat_id, owner, "A chat", True, (message,)), claimed_by=self.worker_id
        )
        return chat_id

    async def do(self, chat_id: ChatId, command: Command) -> ChatState:
        """Have a command executed here."""
        state = await self.chats.apply(chat_id, command)
        if self.after is not None:
            await self.after(state)
        return state

    async def send(self, chat_id: ChatId, text: str) -> ChatState:
        """Let the user say something."""
        queued = QueuedMessageId(str(uuid.uuid5(uuid.UUID(chat_id), f"{next(self.numbers)}")))
        message = NewMessage(Role.USER, (Text(text),), ANN.id)
        return await self.do(chat_id, SendMessage(message, queued, self.worker_id))

    async def finish(self, chat_id: ChatId, *texts: str) -> ChatState:
        """Let the model end the turn."""
        state = await self.chats.state(chat_id)
        messages = tuple(NewMessage(Role.ASSISTANT, (Text(text),)) for text in texts)
        return await self.do(chat_id, FinishTurn(fence_of(state), messages))

    async def finish_interruption(self, chat_id: ChatId, *texts: str) -> ChatState:
        """Keep what an interrupted turn made."""
        state = await self.chats.state(chat_id)
        messages = tuple(NewMessage(Role.ASSISTANT, (Text(text),)) for text in texts)
        return await self.do(chat_id, FinishInterruption(fence_of(state), messages))

    async def edit(self, chat_id: ChatId, message_id: int, text: str) -> ChatState:
        """Let the user replace a message."""
        message = NewMessage(Role.USER, (Text(text),), ANN.id)
        return await self.do(chat_id, EditMessage(MessageId(message_id), message, self.worker_id))

    async def episode(self, chat_id: ChatId) -> Episode:
        """Begin to show the open episode."""
        return self.live.open(chat_id, fence_of(await self.chats.state(chat_id)))

    async def until_followed(self, chat_id: ChatId) -> None:
        """Wait until the hub here stands where the chat stands."""
        state = await self.chats.state(chat_id)
        while self.hubs.version_of(chat_id) < state.snapshot_version:
            await self.town.pool.execute("SELECT 1")

    async def take_over(self, chat_id: ChatId) -> ChatState:
        """Claim what a dead process left."""
        (claimed,) = await self.workers.sweep(self.worker_id, SweepLimits(10, 10))
        assert claimed.state.chat_id == chat_id
        self.chats.publish_state(claimed.state)
        return claimed.state

    def subscribe(self, chat_id: ChatId, cursor: str = "", *, reader: Owner = ANN) -> Any:
        """Follow a chat here, as the gateway does for a user with one call each."""
        with acting_for(User(UserId(reader.id), UserRole.MEMBER)):
            return self.streams.Subscribe(api.SubscribeRequest(chat_id=chat_id, cursor=cursor))

    def token(self, reader: Owner = ANN) -> str:
        """Return what names a user on a shared stream."""
        user = User(UserId(reader.id), UserRole.MEMBER)
        return self.town.gateway.call_token(ServiceName.CHATD, user)

    def connect(self) -> Any:
        """Open a shared stream, as the gateway."""
        return self.streams.Connect(timeout=60)


@asynccontextmanager
async def town_of(pool: Pool, directory: Path) -> AsyncIterator[Town]:
    """Give what processes share."""
    clock = SystemClock()
    gateway, chatd = SigningKey.generate(), SigningKey.generate()
    trust = directory / "trust.json"
    TrustFile(trust).add_key(ServiceName.GATEWAY, gateway)
    TrustFile(trust).add_key(ServiceName.CHATD, chatd)
    guard = Guard(
        ServiceName.CHATD,
        Trust(trust, clock),
        InMemoryRevocations(()),
        clock,
        peers_by_certificate=False,
    )
    yield Town(
        pool,
        directory,
        clock,
        guard,
        Signer(ServiceName.GATEWAY, gateway, clock),
        Signer(ServiceName.CHATD, chatd, clock),
    )


@asynccontextmanager
async def replica_in(
    town: Town, name: str, *, joins: bool = True, is_quarantine: bool = False
) -> AsyncIterator[Replica]:
    """Run one process until the context ends; `joins` says whether it joins quick pieces."""
    worker_id = WorkerId(str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
    address = Address.parse(f"unix:{town.directory}/{name}.sock")
    telemetry = InMemoryTelemetry("chatd").telemetry
    open_channel = partial(connect, audience=ServiceName.CHATD, telemetry=telemetry)
    await town.pool.execute(INSERT_WORKER, worker_id, str(address), is_quarantine)
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        flush_timer = FlushTimer(town.clock)
        live = LiveChats(flush_timer=flush_timer) if joins else LiveChats()
        reads = PostgresStreamReads(town.pool)
        workers = PostgresWorkers(town.pool, Session("", "unused"), RETRIES)
        peers = Channels((), partial(open_channel, signer=town.chatd))
        stack.push_async_callback(peers.close)
        watch = ReplicaWatch(workers, town.clock, partial(know_replicas, peers))
        relays = PeerRelays(
            worker_id,
            ReplicaChannels(watch, peers),
            hubs=lambda: hubs,
            tasks=tasks,
            clock=town.clock,
        )
        stack.callback(relays.close)
        feeds = Feeds(PostgresFeeds(town.pool), town.groups, town.clock)
        hubs = Hubs(
            reads, live, relays=relays, tasks=tasks, clock=town.clock, on_activity=feeds.poke
        )
        stack.callback(hubs.close)
        access = Access(hubs, reads, town.groups, town.clock)

        def state_changed(state: ChatState) -> None:
            live.state_changed(state)
            hubs.state_changed(state)
            town.tell(replica, state)

        chats = await stack.enter_async_context(
            PostgresChats(town.pool, state_changed, town.clock, appended=hubs.appended)
        )
        works = [
            hubs.run(),
            access.run(),
            watch.run(),
            feeds.run(),
            *((flush_timer.run(),) if joins else ()),
        ]
        for work in works:
            stack.callback(tasks.create_task(work).cancel)
        served = Streams(
            hubs,
            RelaySource(live),
            access,
            lambda method, authorization: town.guard.admit(method, authorization, None),
            feeds,
            watch,
            town.clock,
        )
        await stack.enter_async_context(
            serve(
                address,
                [Registration.of(StreamServicer(served, TunnelledMethods()))],
                guard=town.guard,
                errors=ERRORS,
                domain=DOMAIN,
                telemetry=telemetry,
                drain_s=0.05,
            )
        )
        channel = open_channel(address, signer=town.gateway)
        stack.push_async_callback(channel.close)
        replica = Replica(
            town,
            worker_id,
            live,
            hubs,
            access,
            chats,
            workers,
            StreamServiceStub(channel),
            channel,
        )
        town.replicas.append(replica)
        stack.callback(lambda: town.replicas.remove(replica))
        yield replica
