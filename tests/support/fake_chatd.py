"""A chatd that does what a test scripts: a real gRPC server on a UNIX socket, without a store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from parley.api.chat.v1 import chat_pb2, event_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import stream_service_pb2 as streams_api
from parley.api.chat.v1.chat_service_pb2_grpc import (
    ChatServiceServicer,
    add_ChatServiceServicer_to_server,
)
from parley.api.chat.v1.stream_service_pb2_grpc import (
    StreamServiceServicer,
    add_StreamServiceServicer_to_server,
)
from parley.clock import Clock
from parley.identity import Guard, InMemoryRevocations, ServiceName, Trust, User
from parley.rpc import (
    Address,
    Problem,
    Refusal,
    Registration,
    RunningServer,
    current_caller,
    serve,
)
from parley.telemetry import Telemetry

CHAT_NOT_FOUND = Problem(
    grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", "There is no such chat, or you may not see it."
)
SENTINEL = object()
SUBSCRIBE = "/parley.api.chat.v1.StreamService/Subscribe"


@dataclass(slots=True, eq=False)
class FakeSubscription:
    """One subscription that a client opened on a shared stream, for the test to speak into.

    Attributes:
        request: What was asked.
        user: For whom.
        ended: Set once the client let go of it, or its stream broke off.
        confirmed_bytes: What the client says to have passed on.
        renewals: How often its user was proved anew.
    """

    request: streams_api.OpenSubscription | streams_api.OpenFeed
    user: User
    connection: "FakeConnection"
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    confirmed_bytes: int = 0
    renewals: int = 0

    def send(self, *events: event_pb2.ChatEvent) -> None:
        """Send events."""
        self._deliver(events=events)

    def send_feed(self, *events: event_pb2.FeedEvent) -> None:
        """Send changes of a feed."""
        self._deliver(feed_events=events)

    def close(self, reason: "streams_api.CloseReason.ValueType") -> None:
        """End the subscription with a reason."""
        self._deliver(closed=streams_api.Closed(reason=reason))

    def break_off(self) -> None:
        """End the whole stream without a word."""
        self.connection.frames.put_nowait(SENTINEL)

    def _deliver(self, **content: Any) -> None:
        delivery = streams_api.Delivery(subscription_id=self.request.subscription_id, **content)
        self.connection.frames.put_nowait(streams_api.ConnectResponse(deliveries=[delivery]))


@dataclass(slots=True, eq=False)
class FakeConnection:
    """One shared stream."""

    frames: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    subscriptions: dict[int, FakeSubscription] = field(default_factory=dict)


class FakeChatd:
    """Chats in memory, and a record of who asked what.

    Attributes:
        chats: The chats there are, by id.
        calls: The requests so far, each with the user it was made for.
        refusal: What the next calls of ChatService are refused with, if anything.
        subscriptions: What was opened on shared streams, in order.
        guard: Looks at the tokens.
    """

    def __init__(self) -> None:
        self.chats: dict[str, chat_pb2.Chat] = {}
        self.messages: dict[str, list[message_pb2.Message]] = {}
        self.calls: list[tuple[User | None, Any]] = []
        self.refusal: Problem | None = None
        self.subscriptions: asyncio.Queue[FakeSubscription] = asyncio.Queue()
        self.guard: Guard | None = None

    def requests(self, kind: type[Any]) -> list[Any]:
        """Return the requests of one type, in order."""
        return [request for _, request in self.calls if isinstance(request, kind)]

    @asynccontextmanager
    async def serving(
        self, socket: Path, *, trust_file: Path, clock: Clock, telemetry: Telemetry
    ) -> AsyncIterator[RunningServer]:
        """Serve on a UNIX socket, with the identity checks of a real chatd."""
        guard = Guard(
            ServiceName.CHATD,
            Trust(trust_file, clock),
            InMemoryRevocations(()),
            clock,
            peers_by_certificate=False,
        )
        self.guard = guard
        chats = Registration(
            chats_api.DESCRIPTOR.services_by_name["ChatService"],
            add_ChatServiceServicer_to_server,
            _Chats(self),
        )
        streams = Registration(
            streams_api.DESCRIPTOR.services_by_name["StreamService"],
            add_StreamServiceServicer_to_server,
            _Streams(self),
        )
        async with serve(
            Address.parse(f"unix:{socket}"),
            (chats, streams),
            guard=guard,
            errors={},
            domain="chat.parley",
            telemetry=telemetry,
            drain_s=0.1,
        ) as server:
            yield server

    def take(self, request: Any) -> None:
        """Note a call, and refuse it if the test said so."""
        self.calls.append((current_caller().user, request))
        if self.refusal is not None:
            raise Refusal(self.refusal)

    def chat_of(self, chat_id: str) -> chat_pb2.Chat:
        """Return a chat that exists for the calling user."""
        user = current_caller().user
        chat = self.chats.get(chat_id)
        if chat is None or user is None or chat.owner_id != user.id:
            raise Refusal(CHAT_NOT_FOUND)
        return chat


class _Chats(ChatServiceServicer):
    """The chat methods; those a test does not need stay unserved."""

    def __init__(self, fake: FakeChatd) -> None:
        self._fake = fake

    async def CreateChat(self, request: Any, context: Any) -> chats_api.CreateChatResponse:  # noqa: N802
        self._fake.take(request)
        user = current_caller().user
        assert user is not None
        chat = chat_pb2.Chat(
            id=request.chat_id,
            owner_id=user.id,
            title=request.title or "A chat",
            status=chat_pb2.CHAT_STATUS_RUNNING,
            root_chat_id=request.chat_id,
            versions=chat_pb2.Versions(snapshot=1, history=1, generation_attempt=1),
        )
        self._fake.chats.setdefault(request.chat_id, chat)
        message = self._message(request)
        self._fake.messages.setdefault(request.chat_id, [message])
        return chats_api.CreateChatResponse(chat=chat, message=message)

    async def GetChat(self, request: Any, context: Any) -> chats_api.GetChatResponse:  # noqa: N802
        self._fake.take(request)
        return chats_api.GetChatResponse(chat=self._fake.chat_of(request.chat_id))

    async def ListMessages(self, request: Any, context: Any) -> chats_api.ListMessagesResponse:  # noqa: N802
        self._fake.take(request)
        self._fake.chat_of(request.chat_id)
        return chats_api.ListMessagesResponse(messages=self._fake.messages[request.chat_id])

    async def SendMessage(self, request: Any, context: Any) -> chats_api.SendMessageResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat_id)
        message = self._message(request)
        self._fake.messages[request.chat_id].append(message)
        return chats_api.SendMessageResponse(chat=chat, message=message)

    def _message(self, request: Any) -> message_pb2.Message:
        known = self._fake.messages.get(request.chat_id, [])
        return message_pb2.Message(
            id=len(known) + 1,
            chat_id=request.chat_id,
            role=message_pb2.ROLE_USER,
            content=request.content,
        )


class _Streams(StreamServiceServicer):
    """The stream methods."""

    def __init__(self, fake: FakeChatd) -> None:
        self._fake = fake

    async def WatchReplicas(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[streams_api.WatchReplicasResponse]:
        yield streams_api.WatchReplicasResponse()
        await asyncio.Event().wait()

    async def Connect(  # noqa: N802
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[streams_api.ConnectResponse]:
        connection = FakeConnection()
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read(request_iterator, connection))
            try:
                yield streams_api.ConnectResponse()
                while (frame := await connection.frames.get()) is not SENTINEL:
                    yield frame
            finally:
                reading.cancel()
                for subscription in connection.subscriptions.values():
                    subscription.ended.set()

    async def _read(self, requests: Any, connection: FakeConnection) -> None:
        async for request in requests:
            match request.WhichOneof("kind"):
                case "open":
                    self._open(request.open, connection)
                case "open_feed":
                    self._begin(request.open_feed, connection)
                case "renew":
                    connection.subscriptions[request.renew.subscription_id].renewals += 1
                case "confirm":
                    found = connection.subscriptions[request.confirm.subscription_id]
                    found.confirmed_bytes += request.confirm.bytes
                case "close":
                    connection.subscriptions[request.close.subscription_id].ended.set()

    def _open(self, request: streams_api.OpenSubscription, connection: FakeConnection) -> None:
        chat = self._fake.chats.get(request.chat_id)
        if chat is None or chat.owner_id != self._user(request.authorization).id:
            closed = streams_api.Closed(reason=streams_api.CLOSE_REASON_NOT_FOUND)
            delivery = streams_api.Delivery(subscription_id=request.subscription_id, closed=closed)
            connection.frames.put_nowait(streams_api.ConnectResponse(deliveries=[delivery]))
            return
        self._begin(request, connection)

    def _begin(
        self,
        request: streams_api.OpenSubscription | streams_api.OpenFeed,
        connection: FakeConnection,
    ) -> None:
        subscription = FakeSubscription(request, self._user(request.authorization), connection)
        connection.subscriptions[request.subscription_id] = subscription
        subscription.send()
        self._fake.subscriptions.put_nowait(subscription)

    def _user(self, authorization: str) -> User:
        assert self._fake.guard is not None
        user = self._fake.guard.admit(SUBSCRIBE, f"Bearer {authorization}", None).user
        assert user is not None
        return user
