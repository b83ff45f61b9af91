"""A chatd that says what a test told it to, behind the real server, guard and socket."""

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc

from parley.api.chat.v1 import (
    action_pb2,
    action_service_pb2,
    chat_pb2,
    chat_service_pb2,
    event_pb2,
    message_pb2,
    revert_pb2,
    revert_service_pb2,
    stream_service_pb2,
)
from parley.api.chat.v1.action_service_pb2_grpc import (
    ActionServiceServicer,
    add_ActionServiceServicer_to_server,
)
from parley.api.chat.v1.chat_service_pb2_grpc import (
    ChatServiceServicer,
    add_ChatServiceServicer_to_server,
)
from parley.api.chat.v1.revert_service_pb2_grpc import (
    RevertServiceServicer,
    add_RevertServiceServicer_to_server,
)
from parley.api.chat.v1.stream_service_pb2_grpc import (
    StreamServiceServicer,
    add_StreamServiceServicer_to_server,
)
from parley.clock import SystemClock
from parley.identity import (
    Guard,
    InMemoryRevocations,
    Role,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
    User,
    UserId,
)
from parley.rpc import (
    Address,
    Problem,
    Refusal,
    Registration,
    Scheme,
    TlsFiles,
    current_caller,
    serve,
)
from parley.telemetry import InMemoryTelemetry

ADA = User(UserId("5f0c3c55-3a0f-4c53-8e5f-0a2f5f3c9d11"), Role.MEMBER)
TOKEN_ID = "0190f5a0-0000-7000-8000-000000000001"
DOMAIN = "chat.parley"

UNAVAILABLE = Problem(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", "try again")
CHAT_NOT_FOUND = Problem(grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", "there is no such chat")


RESYNC = stream_service_pb2.Closed(reason=stream_service_pb2.CLOSE_REASON_RESYNC)
GOING_AWAY = stream_service_pb2.Closed(reason=stream_service_pb2.CLOSE_REASON_GOING_AWAY)
GONE = stream_service_pb2.Closed(reason=stream_service_pb2.CLOSE_REASON_NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Pause:
    """Holds a scripted stream open until its reader leaves or the server stops."""


StreamStep = event_pb2.ChatEvent | stream_service_pb2.Closed | Problem | Pause
"""An event, the end, a problem to end with, or a pause."""


class ScriptedChats(ChatServiceServicer):
    """Chats in memory, whose next calls fail as told.

    Attributes:
        requests: Every request that came in, failed ones included.
        problems: What the next calls are refused with, one each.
        chats: The chats by id.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.problems: deque[Problem] = deque()
        self.chats: dict[str, chat_pb2.Chat] = {}
        self.messages: dict[str, list[message_pb2.Message]] = {}
        self._open = asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        """Leave every call from now on without an answer."""
        self._open.clear()

    async def CreateChat(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        await self._admit(request)
        owner_id = owner()
        chat_id = str(uuid.uuid5(uuid.UUID(owner_id), request.request_id))
        chat = chat_pb2.Chat(
            id=chat_id,
            owner_id=owner_id,
            title=request.title or "untitled",
            status=chat_pb2.CHAT_STATUS_RUNNING,
            labels=request.labels,
        )
        self.chats[chat_id] = chat
        self.messages[chat_id] = []
        message = self._append(chat_id, request.content)
        return chat_service_pb2.CreateChatResponse(chat=chat, message=message)

    async def GetChat(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        await self._admit(request)
        return chat_service_pb2.GetChatResponse(chat=self._find(request.chat_id))

    async def ListMessages(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        await self._admit(request)
        self._find(request.chat_id)
        newest_first = list(reversed(self.messages[request.chat_id]))
        return chat_service_pb2.ListMessagesResponse(
            messages=newest_first[: request.limit or 50],
            has_more=len(newest_first) > (request.limit or 50),
        )

    async def SendMessage(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        await self._admit(request)
        chat = self._find(request.chat_id)
        message = self._append(request.chat_id, request.content)
        return chat_service_pb2.SendMessageResponse(message=message, chat=chat)

    async def Interrupt(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        await self._admit(request)
        return chat_service_pb2.InterruptResponse(chat=self._find(request.chat_id))

    async def SubmitToolResults(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        await self._admit(request)
        chat = self._find(request.chat_id)
        chat.ClearField("required_action")
        chat.status = chat_pb2.CHAT_STATUS_RUNNING
        return chat_service_pb2.SubmitToolResultsResponse(chat=chat)

    async def _admit(self, request: Any) -> None:
        self.requests.append(request)
        await self._open.wait()
        if self.problems:
            raise Refusal(self.problems.popleft())

    def _find(self, chat_id: str) -> chat_pb2.Chat:
        if chat_id not in self.chats:
            raise Refusal(CHAT_NOT_FOUND)
        return self.chats[chat_id]

    def _append(self, chat_id: str, content: Iterable[message_pb2.Part]) -> message_pb2.Message:
        history = self.messages[chat_id]
        message = message_pb2.Message(
            id=len(history) + 1,
            chat_id=chat_id,
            role=message_pb2.ROLE_USER,
            content=content,
            created_by=owner(),
        )
        history.append(message)
        return message


class ScriptedActions(ActionServiceServicer):
    """Actions in memory, and every request for them.

    Attributes:
        requests: Every request that came in.
        actions: The actions by id.
        plan: The plan of every chat.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.actions: dict[str, action_pb2.Action] = {}
        self.plan = action_service_pb2.Plan()

    async def ListActions(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return action_service_pb2.ListActionsResponse(
            actions=self.actions.values(), next_page_token="more"
        )

    async def GetAction(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return action_service_pb2.GetActionResponse(action=self.actions[request.action_id])

    async def AnswerAction(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        action = self.actions[request.action_id]
        action.state = action_pb2.ACTION_STATE_ANSWERED
        return action_service_pb2.AnswerActionResponse(action=action)

    async def GetPlan(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return action_service_pb2.GetPlanResponse(plan=self.plan)


class ScriptedReverts(RevertServiceServicer):
    """Answers to requests for reverts, and every request.

    Attributes:
        requests: Every request that came in.
        revert: The one revert that there is.
        preview: What it would do.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.revert = revert_pb2.Revert()
        self.preview = revert_service_pb2.PreviewRevertResponse()

    async def PreviewRevert(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return self.preview

    async def RevertChat(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return revert_service_pb2.RevertChatResponse(revert=self.revert)

    async def UndoRevert(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return revert_service_pb2.UndoRevertResponse(revert=self.revert)

    async def GetRevert(self, request: Any, context: Any) -> Any:  # noqa: N802 (the proto's)
        self.requests.append(request)
        return revert_service_pb2.GetRevertResponse(revert=self.revert)


class ScriptedStreams(StreamServiceServicer):
    """Streams that play one script per subscription and refuse to guess when there is none.

    Attributes:
        requests: Every subscription that was asked for.
        scripts: What the next streams do, one each.
    """

    def __init__(self) -> None:
        self.requests: list[stream_service_pb2.SubscribeRequest] = []
        self.scripts: deque[Sequence[StreamStep]] = deque()
        self._left = 0
        self._someone_left = asyncio.Condition()

    async def until_left(self, count: int) -> None:
        """Wait until `count` streams have ended."""
        async with self._someone_left:
            await self._someone_left.wait_for(lambda: self._left >= count)

    async def Subscribe(  # noqa: N802 (the name is the proto's)
        self, request: Any, context: Any
    ) -> AsyncIterator[stream_service_pb2.SubscribeResponse]:
        self.requests.append(request)
        try:
            for step in self.scripts.popleft():
                match step:
                    case event_pb2.ChatEvent():
                        yield stream_service_pb2.SubscribeResponse(event=step)
                    case stream_service_pb2.Closed():
                        yield stream_service_pb2.SubscribeResponse(closed=step)
                    case Problem():
                        raise Refusal(step)
                    case Pause():
                        await asyncio.Event().wait()
        finally:
            async with self._someone_left:
                self._left += 1
                self._someone_left.notify_all()


class Tokens:
    """The gateway's key, trusted by everyone, and the service tokens it signs."""

    def __init__(self, directory: Path) -> None:
        self.trust_path = directory / "trust.json"
        key = SigningKey.generate()
        TrustFile(self.trust_path).add_key(ServiceName.GATEWAY, key)
        self._signer = Signer(ServiceName.GATEWAY, key, SystemClock())

    def issue(self, *scopes: str, token_id: str = TOKEN_ID) -> str:
        """Return a token of Ada's nightly job."""
        expires_at = SystemClock().now() + timedelta(hours=1)
        wanted = scopes or ("chat:read", "chat:write")
        return self._signer.service_token(token_id, "nightly", ADA, wanted, expires_at)


@dataclass(frozen=True, slots=True)
class FakeChatd:
    """One scripted chatd process.

    Attributes:
        address: Where it listens.
        chats: Its chats.
        streams: Its streams.
        actions: What its chats wait for.
        reverts: Its reverts.
        revocations: The tokens it refuses.
    """

    address: Address
    chats: ScriptedChats = field(default_factory=ScriptedChats)
    streams: ScriptedStreams = field(default_factory=ScriptedStreams)
    actions: ScriptedActions = field(default_factory=ScriptedActions)
    reverts: ScriptedReverts = field(default_factory=ScriptedReverts)
    revocations: InMemoryRevocations = field(default_factory=lambda: InMemoryRevocations([]))


@asynccontextmanager
async def fake_chatd(
    tokens: Tokens, address: Address | str, *, tls: TlsFiles | None = None
) -> AsyncIterator[FakeChatd]:
    """Serve a scripted chatd at `address` until the context ends; it does not wait for readers."""
    wanted = Address.parse(address) if isinstance(address, str) else address
    told = FakeChatd(wanted)
    guard = Guard(
        ServiceName.CHATD,
        Trust(tokens.trust_path, SystemClock()),
        told.revocations,
        SystemClock(),
        peers_by_certificate=wanted.scheme is Scheme.TLS,
    )
    registrations = (
        Registration(
            chat_service_pb2.DESCRIPTOR.services_by_name["ChatService"],
            add_ChatServiceServicer_to_server,
            told.chats,
        ),
        Registration(
            action_service_pb2.DESCRIPTOR.services_by_name["ActionService"],
            add_ActionServiceServicer_to_server,
            told.actions,
        ),
        Registration(
            revert_service_pb2.DESCRIPTOR.services_by_name["RevertService"],
            add_RevertServiceServicer_to_server,
            told.reverts,
        ),
        Registration(
            stream_service_pb2.DESCRIPTOR.services_by_name["StreamService"],
            add_StreamServiceServicer_to_server,
            told.streams,
        ),
    )
    async with serve(
        wanted,
        registrations,
        guard=guard,
        errors={},
        domain=DOMAIN,
        telemetry=InMemoryTelemetry("chatd").telemetry,
        tls=tls,
        drain_s=0.05,
    ) as server:
        yield replace(told, address=server.address)


def owner() -> str:
    """Return the user of the call being served."""
    user = current_caller().user
    assert user is not None
    return user.id


def status_event(cursor: str, status: str) -> event_pb2.ChatEvent:
    """Return a change of status, named as in the proto without its prefix."""
    number = chat_pb2.ChatStatus.Value(f"CHAT_STATUS_{status.upper()}")
    return event_pb2.ChatEvent(cursor=cursor, status=event_pb2.StatusEvent(status=number))


def answer_event(cursor: str, message_id: int, *texts: str) -> event_pb2.ChatEvent:
    """Return a committed message of the model."""
    content = [message_pb2.Part(text=message_pb2.TextPart(text=text)) for text in texts]
    message = message_pb2.Message(
        id=message_id, chat_id="c", role=message_pb2.ROLE_ASSISTANT, content=content
    )
    return event_pb2.ChatEvent(cursor=cursor, message=message)


def delta_event(cursor: str, seq: int, text: str) -> event_pb2.ChatEvent:
    """Return a piece of text of the answer being written."""
    part = event_pb2.MessagePartEvent(
        role=message_pb2.ROLE_ASSISTANT,
        part=message_pb2.Part(text=message_pb2.TextPart(text=text)),
        history_version=1,
        generation_attempt=1,
        seq=seq,
    )
    return event_pb2.ChatEvent(cursor=cursor, message_part=part)
