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


@dataclass(slots=True)
class FakeSubscription:
    """One Subscribe call that a client made, for the test to speak into."""

    request: streams_api.SubscribeRequest
    _items: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, event: event_pb2.ChatEvent) -> None:
        """Send an event."""
        self._items.put_nowait(streams_api.SubscribeResponse(event=event))

    def close(self, reason: "streams_api.CloseReason.ValueType") -> None:
        """End the subscription with a reason."""
        closed = streams_api.Closed(reason=reason)
        self._items.put_nowait(streams_api.SubscribeResponse(closed=closed))
        self._items.put_nowait(SENTINEL)

    def break_off(self) -> None:
        """End the call without a word."""
        self._items.put_nowait(SENTINEL)

    async def responses(self) -> AsyncIterator[streams_api.SubscribeResponse]:
        """Give what the test sends."""
        try:
            while (item := await self._items.get()) is not SENTINEL:
                yield item
        finally:
            self.ended.set()


class FakeChatd:
    """Chats in memory, and a record of who asked what.

    Attributes:
        chats: The chats there are, by id.
        calls: The requests so far, each with the user it was made for.
        refusal: What the next calls of ChatService are refused with, if anything.
        subscriptions: The Subscribe calls, in order.
    """

    def __init__(self) -> None:
        self.chats: dict[str, chat_pb2.Chat] = {}
        self.messages: dict[str, list[message_pb2.Message]] = {}
        self.calls: list[tuple[User | None, Any]] = []
        self.refusal: Problem | None = None
        self.subscriptions: asyncio.Queue[FakeSubscription] = asyncio.Queue()

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

    async def Subscribe(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[streams_api.SubscribeResponse]:
        self._fake.take(request)
        subscription = FakeSubscription(request)
        self._fake.subscriptions.put_nowait(subscription)
        async for response in subscription.responses():
            yield response
