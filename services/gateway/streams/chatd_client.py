"""The client of chatd: a chat's owner process first, then the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.tunnel import CallTunnel, TunnelledMethod
from parley.api.chat.v1.action_service_pb2_grpc import ActionServiceStub
from parley.api.chat.v1.approval_service_pb2_grpc import ApprovalServiceStub
from parley.api.chat.v1.break_glass_service_pb2_grpc import BreakGlassServiceStub
from parley.api.chat.v1.chat_service_pb2 import SendMessageRequest, SendMessageResponse
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceStub
from parley.api.chat.v1.context_service_pb2_grpc import ContextServiceStub
from parley.api.chat.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.chat.v1.goal_service_pb2_grpc import GoalServiceStub
from parley.api.chat.v1.hook_service_pb2_grpc import HookServiceStub
from parley.api.chat.v1.model_service_pb2_grpc import ModelServiceStub
from parley.api.chat.v1.monitor_service_pb2_grpc import MonitorServiceStub
from parley.api.chat.v1.push_service_pb2_grpc import PushServiceStub
from parley.api.chat.v1.race_service_pb2_grpc import RaceServiceStub
from parley.api.chat.v1.retention_service_pb2_grpc import RetentionServiceStub
from parley.api.chat.v1.revert_service_pb2_grpc import RevertServiceStub
from parley.api.chat.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from parley.api.chat.v1.settings_service_pb2_grpc import SettingsServiceStub
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceStub
from parley.api.chat.v1.usage_service_pb2_grpc import UsageServiceStub
from parley.api.workspace.v1.node_service_pb2_grpc import NodeServiceStub
from parley.api.workspace.v1.secret_service_pb2_grpc import SecretServiceStub
from parley.api.workspace.v1.workspace_access_service_pb2 import (
    WaitWorkspaceOutputRequest,
    WaitWorkspaceOutputResponse,
)
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceStub
from parley.api.workspace.v1.workspace_server_service_pb2_grpc import WorkspaceServerServiceStub
from parley.api.workspace.v1.workspace_service_pb2_grpc import WorkspaceServiceStub
from parley.identity import User
from parley.rpc import Address, Channels, Problem, acting_for, problem_of

T = TypeVar("T")

SEND = "/parley.api.chat.v1.ChatService/SendMessage"
WAIT_OUTPUT = "/parley.api.workspace.v1.WorkspaceAccessService/WaitWorkspaceOutput"
#: Longer than the waits of followed processes by what the deadline of a wait has to be later.
WAIT_OUTPUT_S = 55.0

#: After these statuses another process is tried: this one is unavailable, or its clock skew exceeds
#: the validity of call tokens. Users are authenticated before, so UNAUTHENTICATED never concerns
#: them.
FAILOVER_STATUSES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stubs:
    """The stubs of one chatd process.

    Attributes:
        send: Sends a message, like `chats`, but over the shared stream while there is one.
        wait_output: Waits for the output of a process, over the shared stream only.
    """

    send: TunnelledMethod[SendMessageRequest, SendMessageResponse]
    wait_output: TunnelledMethod[WaitWorkspaceOutputRequest, WaitWorkspaceOutputResponse]
    chats: ChatServiceStub
    streams: StreamServiceStub
    files: FileServiceStub
    hooks: HookServiceStub
    goals: GoalServiceStub
    models: ModelServiceStub
    monitors: MonitorServiceStub
    usage: UsageServiceStub
    push: PushServiceStub
    races: RaceServiceStub
    retention: RetentionServiceStub
    reverts: RevertServiceStub
    schedules: ScheduleServiceStub
    context: ContextServiceStub
    approvals: ApprovalServiceStub
    break_glass: BreakGlassServiceStub
    settings: SettingsServiceStub
    actions: ActionServiceStub
    workspaces: WorkspaceAccessServiceStub
    catalogue: WorkspaceServiceStub
    secrets: SecretServiceStub
    workspace_servers: WorkspaceServerServiceStub
    nodes: NodeServiceStub
    health: HealthStub


class Routes(Protocol):
    """The routing of calls to processes; implemented by `gateway.streams.links.Links`."""

    def preferred(self, key: str) -> Iterable[Address]:
        """Return the processes in the order of preference of a chat or user."""
        ...

    def tunnel_to(self, address: Address) -> CallTunnel | None:
        """Return the call tunnel to a process, if its stream is connected."""
        ...


class ChatdClient:
    """A client of all chatd processes."""

    def __init__(self, channels: Channels, routes: Routes) -> None:
        """Use the processes of `channels`, in the order of `routes`."""
        self._channels = channels
        self._routes = routes
        self._stubs: dict[grpc.aio.Channel, Stubs] = {}

    async def ask(
        self, user: User, chat_id: str, question: Callable[[Stubs], Awaitable[T]]
    ) -> tuple[T, Stubs]:
        """Return the response of the first process that responds, and its stubs.

        The processes are tried in the chat's order of preference, its owner first. A retry is safe:
        every method has a request id.

        Raises:
            UpstreamProblem: The response is an error, or no process responds.
        """
        refusal = UpstreamProblem(Problem.of("UPSTREAM_UNAVAILABLE", "no chatd is known"))
        with acting_for(user):
            for stubs in self._preferred(chat_id):
                try:
                    return await question(stubs), stubs
                except grpc.aio.AioRpcError as error:
                    refusal = UpstreamProblem(problem_of(error))
                    if error.code() not in FAILOVER_STATUSES:
                        raise refusal from error
                    _log.warning("a chatd does not answer: %s", refusal)
        raise refusal

    async def ask_any(self, user: User, question: Callable[[Stubs], Awaitable[T]]) -> T:
        """Return the response to a request that concerns no single chat.

        A user's requests go to one process while it is available, so that a response is not older
        than an earlier one.

        Raises:
            UpstreamProblem: The response is an error, or no process responds.
        """
        answer, _ = await self.ask(user, user.id, question)
        return answer

    async def is_healthy(self, within_s: float) -> bool:
        """Return whether any process reports that it is serving."""
        async with asyncio.TaskGroup() as tasks:
            checks = [
                tasks.create_task(_is_serving(self._at(address), within_s))
                for address in self._channels.addresses
            ]
        return any(check.result() for check in checks)

    def _preferred(self, chat_id: str) -> Iterator[Stubs]:
        for address in self._routes.preferred(chat_id):
            yield self._at(address)

    def _at(self, address: Address) -> Stubs:
        # Keyed by channel: a process that restarted has another one.
        channel = self._channels.at(address)
        if channel not in self._stubs:
            chats = ChatServiceStub(channel)
            self._stubs[channel] = Stubs(
                send=TunnelledMethod(
                    SEND,
                    chats.SendMessage,
                    channel,
                    partial(self._routes.tunnel_to, address),
                    SendMessageResponse.FromString,
                ),
                wait_output=TunnelledMethod(
                    WAIT_OUTPUT,
                    None,
                    channel,
                    partial(self._routes.tunnel_to, address),
                    WaitWorkspaceOutputResponse.FromString,
                    WAIT_OUTPUT_S,
                ),
                chats=chats,
                streams=StreamServiceStub(channel),
                files=FileServiceStub(channel),
                hooks=HookServiceStub(channel),
                models=ModelServiceStub(channel),
                monitors=MonitorServiceStub(channel),
                usage=UsageServiceStub(channel),
                push=PushServiceStub(channel),
                races=RaceServiceStub(channel),
                retention=RetentionServiceStub(channel),
                goals=GoalServiceStub(channel),
                reverts=RevertServiceStub(channel),
                schedules=ScheduleServiceStub(channel),
                context=ContextServiceStub(channel),
                approvals=ApprovalServiceStub(channel),
                break_glass=BreakGlassServiceStub(channel),
                settings=SettingsServiceStub(channel),
                actions=ActionServiceStub(channel),
                workspaces=WorkspaceAccessServiceStub(channel),
                catalogue=WorkspaceServiceStub(channel),
                secrets=SecretServiceStub(channel),
                workspace_servers=WorkspaceServerServiceStub(channel),
                nodes=NodeServiceStub(channel),
                health=HealthStub(channel),
            )
        return self._stubs[channel]


async def _is_serving(stubs: Stubs, within_s: float) -> bool:
    try:
        answer = await stubs.health.Check(health_pb2.HealthCheckRequest(), timeout=within_s)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
