"""Fetches live parts from the processes that run the chats: one shared stream to each of them.

Relaying is best effort: while a stream is broken readers continue with committed events, and after
a reconnect it resumes after the last part received here.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Protocol

import grpc

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.transitions import OWNED
from chatd.primitives.domain.ids import ChatId, WorkerId
from chatd.streams.rpc.position import Position
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.event_pb2 import ChatEvent
from parley.api.chat.v1.frame_pb2 import EncodedConnectResponse, EncodedDelivery
from parley.clock import Clock
from parley.rpc import LIMITS
from parley.tasks import Starter

CONNECT = "/parley.api.chat.v1.StreamService/Connect"
SILENCE_S_MAX = 30.0
RETRY_S = 0.1
RETRY_S_MAX = 5.0

logger = logging.getLogger(__name__)


class RelayTarget(Protocol):
    """The part of the hubs that receives relayed parts."""

    def relayed(self, chat_id: ChatId, episode: tuple[int, int], seq: int, body: bytes) -> None:
        """Forward a live part from the process that runs the chat."""
        ...

    def seen_of(self, chat_id: ChatId) -> tuple[tuple[int, int], int]:
        """Return the open episode of a chat and the number of its last part received here."""
        ...


class Peers(Protocol):
    """The other processes."""

    async def channel_to(self, worker_id: WorkerId) -> grpc.aio.Channel | None:
        """Return a channel to a process; None if the process is not registered."""
        ...


class PeerRelays:
    """Fetches the live parts of chats that other processes run."""

    def __init__(
        self,
        own: WorkerId,
        peers: Peers,
        *,
        hubs: Callable[[], RelayTarget],
        tasks: Starter,
        clock: Clock,
    ) -> None:
        self._own = own
        self._peers = peers
        self._hubs = hubs
        self._tasks = tasks
        self._context = copy_context()
        self._clock = clock
        self._sources: dict[ChatId, WorkerId] = {}
        self._links: dict[WorkerId, _PeerLink] = {}
        self._running: set[asyncio.Task[None]] = set()

    def target(self, state: ChatState) -> None:
        """Fetch the parts of a chat from its owner from now on, if that is another process."""
        owner = state.worker_id
        if owner == self._own or state.status not in OWNED or not state.generation_attempt:
            owner = None
        before = self._sources.get(state.chat_id)
        if owner == before:
            return
        self.drop(state.chat_id)
        if owner is not None:
            self._sources[state.chat_id] = owner
            self._link_to(owner).add(state.chat_id)

    def drop(self, chat_id: ChatId) -> None:
        """Stop fetching the parts of a chat."""
        owner = self._sources.pop(chat_id, None)
        if owner is not None and owner in self._links:
            self._links[owner].remove(chat_id)

    def close(self) -> None:
        """Stop fetching."""
        for task in self._running:
            task.cancel()

    def _link_to(self, owner: WorkerId) -> "_PeerLink":
        link = self._links.get(owner)
        if link is None:
            link = self._links[owner] = _PeerLink(owner, self._peers, self._hubs, self._clock)
            running = self._tasks.create_task(self._run(owner, link), context=self._context.copy())
            self._running.add(running)
            running.add_done_callback(self._running.discard)
        return link

    async def _run(self, owner: WorkerId, link: "_PeerLink") -> None:
        try:
            await link.run()
        except Exception:
            logger.exception("live parts cannot be fetched from another process")
        finally:
            if self._links.get(owner) is link:
                del self._links[owner]


class _PeerLink:
    """The stream to one other process, reconnected as long as any chat needs it."""

    def __init__(
        self, owner: WorkerId, peers: Peers, hubs: Callable[[], RelayTarget], clock: Clock
    ) -> None:
        self._owner = owner
        self._peers = peers
        self._hubs = hubs
        self._clock = clock
        self._ids = itertools.count(1)
        self._by_chat: dict[ChatId, int] = {}
        self._by_id: dict[int, ChatId] = {}
        self._requests: asyncio.Queue[api.ConnectRequest] = asyncio.Queue()
        self._heard_at = clock.monotonic()

    def add(self, chat_id: ChatId) -> None:
        """Fetch a chat's parts, after those already received."""
        number = next(self._ids)
        self._by_chat[chat_id], self._by_id[number] = number, chat_id
        self._requests.put_nowait(self._opening(chat_id, number))

    def remove(self, chat_id: ChatId) -> None:
        """Stop fetching a chat's parts."""
        number = self._by_chat.pop(chat_id, None)
        if number is not None:
            del self._by_id[number]
            closing = api.CloseSubscription(subscription_id=number)
            self._requests.put_nowait(api.ConnectRequest(close=closing))

    async def run(self) -> None:
        """Connect and reconnect until the stream breaks while no chat needs it."""
        pause_s = RETRY_S
        while self._by_chat:
            channel = await self._peers.channel_to(self._owner)
            if channel is not None and await self._tunnelled(channel):
                pause_s = RETRY_S
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_S_MAX)

    async def _tunnelled(self, channel: grpc.aio.Channel) -> bool:
        """Serve one stream until it breaks; return whether it was ever established."""
        self._requests = asyncio.Queue()
        for chat_id, number in self._by_chat.items():
            self._requests.put_nowait(self._opening(chat_id, number))
        method = channel.stream_stream(
            CONNECT,
            request_serializer=api.ConnectRequest.SerializeToString,
            response_deserializer=EncodedConnectResponse.FromString,
        )
        call: Any = method(timeout=LIMITS.stream_deadline_s)
        self._heard_at = self._clock.monotonic()
        try:
            async with asyncio.TaskGroup() as tasks:
                helpers = (
                    tasks.create_task(self._write(call)),
                    tasks.create_task(self._end_silence(call)),
                )
                was_up = await self._read(call)
                for helper in helpers:
                    helper.cancel()
        finally:
            call.cancel()
        return was_up

    async def _write(self, call: Any) -> None:
        try:
            while True:
                await call.write(await self._requests.get())
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
            return  # `_read` ends too.

    async def _end_silence(self, call: Any) -> None:
        while (left_s := self._heard_at + SILENCE_S_MAX - self._clock.monotonic()) > 0:
            await self._clock.sleep(left_s)
        call.cancel()

    async def _read(self, call: Any) -> bool:
        was_up = False
        try:
            while isinstance(frame := await call.read(), EncodedConnectResponse):
                was_up = True
                self._heard_at = self._clock.monotonic()
                for delivery in frame.deliveries:
                    self._deliver(delivery)
        except grpc.aio.AioRpcError as error:
            logger.info("the stream to another chatd broke off: %s", error.code().name)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
        return was_up

    def _deliver(self, delivery: EncodedDelivery) -> None:
        chat_id = self._by_id.get(delivery.subscription_id)
        if chat_id is None:
            return
        for body in delivery.events:
            part = ChatEvent.FromString(body).message_part
            episode = (part.history_version, part.generation_attempt)
            self._hubs().relayed(chat_id, episode, part.seq, body)
        if delivery.HasField("closed"):
            # This process read too slowly; the owner still keeps the parts that it dropped here.
            self.remove(chat_id)
            self.add(chat_id)

    def _opening(self, chat_id: ChatId, number: int) -> api.ConnectRequest:
        (history, attempt), seq = self._hubs().seen_of(chat_id)
        cursor = Position(history=history, attempt=attempt, seq=seq)
        opening = api.OpenSubscription(
            subscription_id=number, chat_id=chat_id, cursor=str(cursor), relay=True
        )
        return api.ConnectRequest(open=opening)
