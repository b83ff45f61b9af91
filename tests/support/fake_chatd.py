"""A chatd that does what a test scripts: a real gRPC server on a UNIX socket, without a store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from parley.api.chat.v1 import (
    chat_pb2,
    event_pb2,
    message_pb2,
    model_service_pb2,
    model_service_pb2_grpc,
    settings_service_pb2,
    settings_service_pb2_grpc,
    usage_service_pb2,
    usage_service_pb2_grpc,
)
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
from parley.api.workspace.v1 import (
    node_service_pb2,
    node_service_pb2_grpc,
    secret_service_pb2,
    secret_service_pb2_grpc,
    workspace_access_service_pb2,
    workspace_access_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
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
from support.fake_files import FakeFiles

QUEUED_ID = "00000000-0000-0000-0000-0000000000aa"
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


@dataclass(slots=True, eq=False)
class Held:
    """A call that is never answered: when it came, and when its caller gave it up."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        """Wait for the caller to give up."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


class FakeChatd:
    """Chats in memory, and a record of who asked what.

    Attributes:
        chats: The chats there are, by id.
        queues: The messages that wait, by chat.
        calls: The requests so far, each with the user it was made for.
        refusal: What the next calls are refused with, if anything.
        answers: What methods answer, by their names; others answer what chats there are, or
            nothing in particular.
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
        self.answers: dict[str, Any] = {}
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
            (chats, streams, Registration.of(self.files), *self._scripted_services()),
            guard=guard,
            errors={},
            domain="chat.parley",
            telemetry=telemetry,
            drain_s=0.1,
        ) as server:
            yield server

    def _scripted_services(self) -> tuple[Registration, ...]:
        """Serve models, usage, settings and workspaces: every method answers what the test says."""
        services = (
            (model_service_pb2, model_service_pb2_grpc, "ModelService"),
            (usage_service_pb2, usage_service_pb2_grpc, "UsageService"),
            (settings_service_pb2, settings_service_pb2_grpc, "SettingsService"),
            (
                workspace_access_service_pb2,
                workspace_access_service_pb2_grpc,
                "WorkspaceAccessService",
            ),
            (workspace_service_pb2, workspace_service_pb2_grpc, "WorkspaceService"),
            (secret_service_pb2, secret_service_pb2_grpc, "SecretService"),
            (node_service_pb2, node_service_pb2_grpc, "NodeService"),
        )
        return tuple(
            Registration(
                messages.DESCRIPTOR.services_by_name[name],
                getattr(generated, f"add_{name}Servicer_to_server"),
                _scripted(self, messages, getattr(generated, f"{name}Servicer"), name),
            )
            for messages, generated, name in services
        )

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


class _Chats(ChatServiceServicer):
    """The chat methods, over the chats of the test."""

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
        return chats_api.ListMessagesResponse(
            messages=self._fake.messages[request.chat_id],
            queued_messages=self._fake.queues.get(request.chat_id, []),
        )

    async def SendMessage(self, request: Any, context: Any) -> chats_api.SendMessageResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat_id)
        if "SendMessage" in self._fake.answers:
            answer: chats_api.SendMessageResponse = self._fake.answers["SendMessage"]
            return answer
        message = self._message(request)
        self._fake.messages[request.chat_id].append(message)
        return chats_api.SendMessageResponse(chat=chat, message=message)

    async def ListChats(self, request: Any, context: Any) -> chats_api.ListChatsResponse:  # noqa: N802
        self._fake.take(request)
        found = self._fake.chats.values()
        chats = [chat for chat in found if chat.archived == request.archived]
        length = request.page_size or len(chats)
        token = "more" if len(chats) > length else ""
        return chats_api.ListChatsResponse(chats=chats[:length], next_page_token=token)

    async def UpdateChat(self, request: Any, context: Any) -> chats_api.UpdateChatResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat.id)
        for path in request.update_mask.paths:
            chat.ClearField(path)
        chat.MergeFrom(request.chat)
        return chats_api.UpdateChatResponse(chat=chat)

    async def SetArchived(self, request: Any, context: Any) -> chats_api.SetArchivedResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat_id)
        chat.archived = request.archived
        return chats_api.SetArchivedResponse(chat=chat)

    async def DeleteChat(self, request: Any, context: Any) -> chats_api.DeleteChatResponse:  # noqa: N802
        self._fake.take(request)
        self._fake.chat_of(request.chat_id)
        del self._fake.chats[request.chat_id]
        return chats_api.DeleteChatResponse()

    async def ExportChat(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[chats_api.ExportChatResponse]:
        self._fake.take(request)
        yield chats_api.ExportChatResponse(chat=self._fake.chat_of(request.chat_id))
        messages = self._fake.messages[request.chat_id]
        for message in messages:
            yield chats_api.ExportChatResponse(message=message)
        if not self._fake.is_cut_off:
            complete = chats_api.ExportComplete(message_count=len(messages))
            yield chats_api.ExportChatResponse(complete=complete)

    async def EditMessage(self, request: Any, context: Any) -> chats_api.EditMessageResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat_id)
        known = self._fake.messages[request.chat_id]
        gone = [message.id for message in known if message.id >= request.message_id]
        message = self._message(request)
        known[:] = [each for each in known if each.id not in gone] + [message]
        return chats_api.EditMessageResponse(message=message, deleted_message_ids=gone, chat=chat)

    async def DeleteQueuedMessage(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.DeleteQueuedMessageResponse:
        chat = self._chat(request)
        return chats_api.DeleteQueuedMessageResponse(chat=chat)

    async def PromoteQueuedMessage(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.PromoteQueuedMessageResponse:
        chat = self._chat(request)
        return chats_api.PromoteQueuedMessageResponse(chat=chat)

    async def Interrupt(self, request: Any, context: Any) -> chats_api.InterruptResponse:  # noqa: N802
        chat = self._chat(request)
        chat.status = chat_pb2.CHAT_STATUS_INTERRUPTING
        return chats_api.InterruptResponse(chat=chat)

    async def RequestCompaction(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.RequestCompactionResponse:
        return chats_api.RequestCompactionResponse(chat=self._chat(request))

    async def SubmitToolResults(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.SubmitToolResultsResponse:
        return chats_api.SubmitToolResultsResponse(chat=self._chat(request))

    async def ReconcileChat(self, request: Any, context: Any) -> chats_api.ReconcileChatResponse:  # noqa: N802
        chat = self._chat(request)
        chat.status = chat_pb2.CHAT_STATUS_ERROR
        return chats_api.ReconcileChatResponse(chat=chat)

    async def MarkRead(self, request: Any, context: Any) -> chats_api.MarkReadResponse:  # noqa: N802
        self._chat(request)
        return chats_api.MarkReadResponse(last_message_id=request.last_message_id)

    async def GetShares(self, request: Any, context: Any) -> chats_api.GetSharesResponse:  # noqa: N802
        self._chat(request)
        answer: chats_api.GetSharesResponse = self._fake.answers["GetShares"]
        return answer

    async def SetShares(self, request: Any, context: Any) -> chats_api.SetSharesResponse:  # noqa: N802
        self._chat(request)
        return chats_api.SetSharesResponse(shares=request.shares)

    def _chat(self, request: Any) -> chat_pb2.Chat:
        self._fake.take(request)
        return self._fake.chat_of(request.chat_id)

    def _message(self, request: Any) -> message_pb2.Message:
        known = self._fake.messages.get(request.chat_id, [])
        return message_pb2.Message(
            id=len(known) + 1,
            chat_id=request.chat_id,
            role=message_pb2.ROLE_USER,
            content=request.content,
        )


def _scripted(fake: FakeChatd, messages: Any, servicer: type[Any], name: str) -> Any:
    """Return a servicer whose every method notes its request and answers as scripted."""

    def answering(method: Any) -> Any:
        async def answer(self: Any, request: Any, context: Any) -> Any:
            fake.take(request)
            if method.name in fake.held:
                await fake.held[method.name].wait()
            return fake.answers.get(method.name) or getattr(messages, method.output_type.name)()

        async def stream(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
            fake.take(request)
            for piece in fake.answers.get(method.name, ()):
                yield piece

        return stream if method.server_streaming else answer

    methods = messages.DESCRIPTOR.services_by_name[name].methods
    return type(name, (servicer,), {method.name: answering(method) for method in methods})()


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
