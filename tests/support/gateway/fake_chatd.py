"""What a chatd without a store knows and was asked; `fake_chatd_server` serves it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import grpc

from parley.api.chat.v1 import chat_pb2, event_pb2, message_pb2
from parley.api.chat.v1 import stream_service_pb2 as streams_api
from parley.identity import Guard, User
from parley.rpc import Problem, Refusal, current_caller
from support.gateway.fake_files import FakeFiles

QUEUED_ID = "00000000-0000-0000-0000-0000000000aa"
EDIT_REVERT_ID = "00000000-0000-0000-0000-0000000000ab"
CHAT_NOT_FOUND = Problem(
    grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", "There is no such chat, or you may not see it."
)
BREAK = object()


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
        self.connection.frames.put_nowait(BREAK)

    def _deliver(self, **content: Any) -> None:
        delivery = streams_api.Delivery(subscription_id=self.request.subscription_id, **content)
        self.connection.frames.put_nowait(streams_api.ConnectResponse(deliveries=[delivery]))


@dataclass(slots=True, eq=False)
class FakeConnection:
    """One shared stream."""

    frames: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    subscriptions: dict[int, FakeSubscription] = field(default_factory=dict)

    def answer(self, answer: streams_api.TunnelledAnswer) -> None:
        """Answer a call that the stream carried."""
        self.frames.put_nowait(streams_api.ConnectResponse(answers=[answer]))


@dataclass(slots=True, eq=False)
class Held:
    """Calls that are not answered: when they came, and when their callers gave them up."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    count: int = 0
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait(self) -> None:
        """Wait for the caller to give up, or to be answered after all."""
        self.begun.set()
        async with self.came:
            self.count += 1
            self.came.notify_all()
        try:
            await self.released.wait()
        finally:
            self.ended.set()

    async def until_came(self, count: int) -> None:
        """Wait until so many calls came."""
        async with self.came:
            await self.came.wait_for(lambda: self.count >= count)


class FakeChatd:
    """Chats in memory, and a record of who asked what.

    Attributes:
        chats: The chats there are, by id.
        queues: The messages that wait, by chat.
        calls: The requests so far, each with the user it was made for.
        refusal: What the next calls are refused with, if anything.
        answers: What methods answer, by their names, or what returns it for a request; others
            answer what chats there are, or nothing in particular.
        tunnelled: The methods of the calls that came over shared streams.
        held: The scripted methods that are never answered.
        is_cut_off: Whether an export ends before its end.
        subscriptions: What was opened on shared streams, in order.
        files: The files there are.
        guard: Looks at the tokens.
    """

    def __init__(self) -> None:
        self.chats: dict[str, chat_pb2.Chat] = {}
        self.messages: dict[str, list[message_pb2.Message]] = {}
        self.queues: dict[str, list[chat_pb2.QueuedMessage]] = {}
        self.uploaded = b""
        self.answers: dict[str, Any] = {}
        self.tunnelled: list[str] = []
        self.held: dict[str, Held] = {}
        self.is_cut_off = False
        self.calls: list[tuple[User | None, Any]] = []
        self.refusal: Problem | None = None
        self.subscriptions: asyncio.Queue[FakeSubscription] = asyncio.Queue()
        self.guard: Guard | None = None
        self.files = FakeFiles(self.take)

    def requests(self, kind: type[Any]) -> list[Any]:
        """Return the requests of one type, in order."""
        return [request for _, request in self.calls if isinstance(request, kind)]

    def hold(self, method: str) -> Held:
        """Answer a scripted method never again."""
        return self.held.setdefault(method, Held())

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
