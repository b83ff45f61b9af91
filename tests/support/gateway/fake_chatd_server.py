"""A chatd that does what a test scripts: a real gRPC server on a UNIX socket, without a store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from parley.api.chat.v1 import (
    action_service_pb2,
    action_service_pb2_grpc,
    approval_service_pb2,
    approval_service_pb2_grpc,
    context_service_pb2,
    context_service_pb2_grpc,
    goal_service_pb2,
    goal_service_pb2_grpc,
    hook_service_pb2,
    hook_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    monitor_service_pb2,
    monitor_service_pb2_grpc,
    push_service_pb2,
    push_service_pb2_grpc,
    race_service_pb2,
    race_service_pb2_grpc,
    revert_service_pb2,
    revert_service_pb2_grpc,
    schedule_service_pb2,
    schedule_service_pb2_grpc,
    settings_service_pb2,
    settings_service_pb2_grpc,
    usage_service_pb2,
    usage_service_pb2_grpc,
)
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import stream_service_pb2 as streams_api
from parley.api.chat.v1.chat_service_pb2_grpc import add_ChatServiceServicer_to_server
from parley.api.chat.v1.stream_service_pb2_grpc import add_StreamServiceServicer_to_server
from parley.api.workspace.v1 import (
    node_service_pb2,
    node_service_pb2_grpc,
    secret_service_pb2,
    secret_service_pb2_grpc,
    workspace_access_service_pb2,
    workspace_access_service_pb2_grpc,
    workspace_server_service_pb2,
    workspace_server_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
)
from parley.clock import Clock
from parley.identity import Guard, InMemoryRevocations, ServiceName, Trust
from parley.rpc import Address, Registration, RunningServer, TunnelledMethods, serve
from parley.telemetry import Telemetry
from support.gateway.fake_chat_methods import FakeChatMethods
from support.gateway.fake_chatd import FakeChatd
from support.gateway.fake_stream_methods import FakeStreamMethods


@asynccontextmanager
async def serving(
    fake: FakeChatd, socket: Path, *, trust_file: Path, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[RunningServer]:
    """Serve on a UNIX socket, with the identity checks of a real chatd."""
    guard = Guard(
        ServiceName.CHATD,
        Trust(trust_file, clock),
        InMemoryRevocations(()),
        clock,
        peers_by_certificate=False,
    )
    fake.guard = guard
    tunnelled = TunnelledMethods()
    chats = Registration(
        chats_api.DESCRIPTOR.services_by_name["ChatService"],
        add_ChatServiceServicer_to_server,
        FakeChatMethods(fake),
    )
    streams = Registration(
        streams_api.DESCRIPTOR.services_by_name["StreamService"],
        add_StreamServiceServicer_to_server,
        FakeStreamMethods(fake, tunnelled),
    )
    async with serve(
        Address.parse(f"unix:{socket}"),
        (chats, streams, Registration.of(fake.files), *_scripted_services(fake)),
        guard=guard,
        errors={},
        domain="chat.parley",
        telemetry=telemetry,
        drain_s=0.1,
        tunnelled=tunnelled,
    ) as server:
        yield server


def _scripted_services(fake: FakeChatd) -> tuple[Registration, ...]:
    """Serve models, usage, settings and workspaces: every method answers what the test says."""
    services = (
        (action_service_pb2, action_service_pb2_grpc, "ActionService"),
        (approval_service_pb2, approval_service_pb2_grpc, "ApprovalService"),
        (race_service_pb2, race_service_pb2_grpc, "RaceService"),
        (context_service_pb2, context_service_pb2_grpc, "ContextService"),
        (hook_service_pb2, hook_service_pb2_grpc, "HookService"),
        (goal_service_pb2, goal_service_pb2_grpc, "GoalService"),
        (model_service_pb2, model_service_pb2_grpc, "ModelService"),
        (monitor_service_pb2, monitor_service_pb2_grpc, "MonitorService"),
        (push_service_pb2, push_service_pb2_grpc, "PushService"),
        (revert_service_pb2, revert_service_pb2_grpc, "RevertService"),
        (schedule_service_pb2, schedule_service_pb2_grpc, "ScheduleService"),
        (usage_service_pb2, usage_service_pb2_grpc, "UsageService"),
        (settings_service_pb2, settings_service_pb2_grpc, "SettingsService"),
        (
            workspace_access_service_pb2,
            workspace_access_service_pb2_grpc,
            "WorkspaceAccessService",
        ),
        (
            workspace_server_service_pb2,
            workspace_server_service_pb2_grpc,
            "WorkspaceServerService",
        ),
        (workspace_service_pb2, workspace_service_pb2_grpc, "WorkspaceService"),
        (secret_service_pb2, secret_service_pb2_grpc, "SecretService"),
        (node_service_pb2, node_service_pb2_grpc, "NodeService"),
    )
    return tuple(
        Registration(
            messages.DESCRIPTOR.services_by_name[name],
            getattr(generated, f"add_{name}Servicer_to_server"),
            _scripted(fake, messages, getattr(generated, f"{name}Servicer"), name),
        )
        for messages, generated, name in services
    )


def _scripted(fake: FakeChatd, messages: Any, servicer: type[Any], name: str) -> Any:
    """Return a servicer whose every method notes its request and answers as scripted."""

    def answering(method: Any) -> Any:
        async def answer(self: Any, request: Any, context: Any) -> Any:
            if method.client_streaming:
                pieces = [piece async for piece in request]
                fake.uploaded = b"".join(piece.chunk for piece in pieces[1:])
                request = pieces[0]
            fake.take(request)
            if method.name in fake.held:
                await fake.held[method.name].wait()
            answered = fake.answers.get(method.name)
            if callable(answered):
                return answered(request)
            return answered or getattr(messages, method.output_type.name)()

        async def stream(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
            fake.take(request)
            if method.name in fake.held:
                await fake.held[method.name].wait()
            for piece in fake.answers.get(method.name, ()):
                yield piece

        return stream if method.server_streaming else answer

    methods = messages.DESCRIPTOR.services_by_name[name].methods
    return type(name, (servicer,), {method.name: answering(method) for method in methods})()
