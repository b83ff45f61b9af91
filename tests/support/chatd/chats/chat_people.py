"""Users who call chatd through a gateway, and what they say."""

from dataclasses import dataclass, field
from typing import Any

import grpc

from chatd.primitives.domain.ids import OwnerId
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1.action_service_pb2_grpc import ActionServiceStub
from parley.api.chat.v1.approval_service_pb2_grpc import ApprovalServiceStub
from parley.api.chat.v1.break_glass_service_pb2_grpc import BreakGlassServiceStub
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceStub
from parley.api.chat.v1.context_service_pb2_grpc import ContextServiceStub
from parley.api.chat.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.chat.v1.goal_service_pb2_grpc import GoalServiceStub
from parley.api.chat.v1.hook_service_pb2_grpc import HookServiceStub
from parley.api.chat.v1.monitor_service_pb2_grpc import MonitorServiceStub
from parley.api.chat.v1.push_service_pb2_grpc import PushServiceStub
from parley.api.chat.v1.revert_service_pb2_grpc import RevertServiceStub
from parley.api.chat.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceStub
from parley.api.chat.v1.usage_service_pb2_grpc import UsageServiceStub
from parley.api.workspace.v1.node_service_pb2_grpc import NodeServiceStub
from parley.api.workspace.v1.secret_service_pb2_grpc import SecretServiceStub
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceStub
from parley.api.workspace.v1.workspace_server_service_pb2_grpc import WorkspaceServerServiceStub
from parley.api.workspace.v1.workspace_service_pb2_grpc import WorkspaceServiceStub
from parley.identity import Role as UserRole
from parley.identity import User, UserId
from parley.rpc import (
    Problem,
    acting_for,
    problem_of,
)

ANN_ID = OwnerId("00000000-0000-0000-0000-00000000000a")
BOB_ID = OwnerId("00000000-0000-0000-0000-00000000000b")
EVE_ID = OwnerId("00000000-0000-0000-0000-00000000000e")
EVES_GROUP = "00000000-0000-0000-0000-0000000000ee"


@dataclass(slots=True)
class Person:
    """A user who calls through the gateway."""

    id: OwnerId
    stub: Any
    streams: Any
    usage: Any
    files: Any
    workspaces: Any
    catalogue: Any
    nodes: Any
    secrets: Any
    reverts: Any
    actions: Any
    approvals: Any
    break_glass: Any
    context: Any
    hooks: Any
    schedules: Any
    goals: Any
    monitors: Any
    workspace_servers: Any
    push: Any
    role: UserRole = UserRole.MEMBER
    numbers: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def through(cls, channel: grpc.aio.Channel, user_id: OwnerId) -> "Person":
        """Return a user whose calls go through a channel."""
        return cls(
            user_id,
            ChatServiceStub(channel),
            StreamServiceStub(channel),
            usage=UsageServiceStub(channel),
            files=FileServiceStub(channel),
            workspaces=WorkspaceAccessServiceStub(channel),
            catalogue=WorkspaceServiceStub(channel),
            nodes=NodeServiceStub(channel),
            secrets=SecretServiceStub(channel),
            reverts=RevertServiceStub(channel),
            actions=ActionServiceStub(channel),
            approvals=ApprovalServiceStub(channel),
            break_glass=BreakGlassServiceStub(channel),
            context=ContextServiceStub(channel),
            hooks=HookServiceStub(channel),
            schedules=ScheduleServiceStub(channel),
            goals=GoalServiceStub(channel),
            monitors=MonitorServiceStub(channel),
            workspace_servers=WorkspaceServerServiceStub(channel),
            push=PushServiceStub(channel),
        )

    async def ask(self, request: Any) -> Any:
        """Call the method whose request this is."""
        method = request.DESCRIPTOR.name.removesuffix("Request")
        stubs = (
            self.usage,
            self.workspaces,
            self.catalogue,
            self.nodes,
            self.secrets,
            self.reverts,
            self.actions,
            self.approvals,
            self.break_glass,
            self.context,
            self.hooks,
            self.schedules,
            self.goals,
            self.monitors,
            self.workspace_servers,
            self.push,
        )
        offering = (each for each in stubs if hasattr(each, method))
        stub = next(offering, self.stub)
        with acting_for(User(UserId(self.id), self.role)):
            return await getattr(stub, method)(request)

    async def refusal(self, request: Any) -> Problem:
        """Call a method that must refuse, and return why it did."""
        try:
            if isinstance(request, api.ExportChatRequest):
                answer: Any = await self.export(request.chat_id)
            else:
                answer = await self.ask(request)
        except grpc.aio.AioRpcError as error:
            return problem_of(error)
        raise AssertionError(f"was not refused but answered {answer}")

    async def export(self, chat_id: str) -> list[Any]:
        """Read a whole chat."""
        with acting_for(User(UserId(self.id), self.role)):
            call = self.stub.ExportChat(api.ExportChatRequest(chat_id=chat_id))
        return [piece async for piece in call]

    def fresh(self) -> str:
        """Return a request id that was not used before."""
        self.numbers[0] += 1
        return f"request-{self.numbers[0]}"

    async def create(self, said: str = "hello", **more: Any) -> chat_pb2.Chat:
        """Create a chat."""
        more.setdefault("request_id", self.fresh())
        created = await self.ask(api.CreateChatRequest(content=[text(said)], **more))
        chat: chat_pb2.Chat = created.chat
        return chat

    async def send(self, chat_id: str, said: str = "more", **more: Any) -> api.SendMessageResponse:
        """Send a message."""
        more.setdefault("request_id", self.fresh())
        request = api.SendMessageRequest(chat_id=chat_id, content=[text(said)], **more)
        answer: api.SendMessageResponse = await self.ask(request)
        return answer

    async def get(self, chat_id: str) -> chat_pb2.Chat:
        """Read a chat."""
        got = await self.ask(api.GetChatRequest(chat_id=chat_id))
        chat: chat_pb2.Chat = got.chat
        return chat

    async def texts(self, chat_id: str) -> list[str]:
        """Read the first texts of a history, in order."""
        page = await self.ask(api.ListMessagesRequest(chat_id=chat_id, limit=200))
        return [message.content[0].text.text for message in reversed(page.messages)]


def text(said: str) -> message_pb2.Part:
    """Return a part of a message."""
    return message_pb2.Part(text=message_pb2.TextPart(text=said))
