"""An MCP server in a test: its one tool hands a script to another chat and waits for the answer.

That is what a subagent is to the executor of the call that starts one: an effect that takes long,
has effects of its own, and must not begin again with the next owner of the chat that made the call.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
from mcp.server.mcpserver import MCPServer

from gateway.http.addresses import HttpAddress
from gateway.http.limits.connections import OpenConnections
from gateway.http.server import serve_http
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.api.mcp.v1.server_service_pb2_grpc import McpServerServiceStub
from parley.client import Parley
from parley.clock import SystemClock
from support.faults.lab import FaultLab, issue_token

SLUG = "chats"
TOOL = f"{SLUG}__delegate"
ALLOWED_HOSTS = "MCPGATEWAY_ALLOWED_HOSTS"
CONNECTIONS_MAX = 100
ASK_S_MAX = 30.0
PATIENCE_MS = 600_000
READY = "ready"

Delegate = Callable[[str], Awaitable[str]]


def calling(script: str) -> str:
    """Return what makes the scripted model hand a script to another chat."""
    return f"call: {TOOL} {json.dumps({'script': script})}"


@asynccontextmanager
async def delegating(lab: FaultLab, delegate: Delegate) -> AsyncIterator[None]:
    """Offer the tool to all chats of a stack, until the end; `delegate` does what it is called for.

    The stack must have been started with the server's address as its only allowed host.
    """

    async def answer(script: str) -> str:
        return READY if script == READY else await delegate(script)

    server = MCPServer(SLUG)
    server.tool(name="delegate", description="Let another chat do it.", structured_output=False)(
        answer
    )
    application = server.streamable_http_app()
    address = HttpAddress.parse(lab.stack.environment[ALLOWED_HOSTS])
    async with (
        application.router.lifespan_context(application),
        serve_http(
            application,
            address,
            public_url=f"http://{address}",
            open_connections=OpenConnections(CONNECTIONS_MAX, address_max=CONNECTIONS_MAX),
            clock=SystemClock(),
        ),
        registered(lab, f"http://{address}/mcp"),
    ):
        await until_offered(lab, calling(READY), READY)
        yield


@asynccontextmanager
async def registered(
    lab: FaultLab,
    url: str,
    auth_kind: server_pb2.AuthKind.ValueType = server_pb2.AUTH_KIND_NONE,
) -> AsyncIterator[str]:
    """Offer the tools of a server to all chats of a stack, until the end; return its id."""
    token = issue_token(lab.stack, "mcp:admin")
    metadata = (("authorization", f"Bearer {token}"),)
    settings = server_pb2.McpServerSettings(
        slug=SLUG,
        display_name="Chats",
        url=url,
        transport=server_pb2.TRANSPORT_STREAMABLE_HTTP,
        auth_kind=auth_kind,
        availability=server_pb2.AVAILABILITY_FORCE_ON,
        approval_policy=server_pb2.APPROVAL_POLICY_NEVER,
        is_enabled=True,
        limits=server_pb2.McpServerLimits(
            idle_timeout_ms=PATIENCE_MS,
            calls_max=CONNECTIONS_MAX,
            calls_per_user_max=CONNECTIONS_MAX,
        ),
    )
    (address, *_) = lab.stack.endpoints()["grpc"]["mcpgateway"]
    async with grpc.aio.insecure_channel(address) as channel:
        servers = McpServerServiceStub(channel)
        wanted = api.CreateServerRequest(request_id=lab.unique(), settings=settings)
        created = await servers.CreateServer(wanted, timeout=ASK_S_MAX, metadata=metadata)
        try:
            yield created.server.server_id
        finally:
            request = api.DeleteServerRequest(
                request_id=lab.unique(), server_id=created.server.server_id
            )
            await servers.DeleteServer(request, timeout=ASK_S_MAX, metadata=metadata)


async def until_offered(lab: FaultLab, call: str, answer: str) -> None:
    """Wait until a call of a tool has its answer in chats of every chatd."""
    for address in lab.addresses:
        client = await lab.client(address)

        async def is_offered(client: Parley = client) -> bool:
            return f"```\n{answer}\n```" in await client.ask(call)

        await lab.until(is_offered, f"an offer of the tool by {address}")
