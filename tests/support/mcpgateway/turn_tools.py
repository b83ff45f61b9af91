"""The MCP tools of a turn, as chatd lists and calls them at a running mcpgateway."""

import json
from collections.abc import Mapping
from typing import Any

from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Dispatch, Execution, Executor, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.clock import Clock, FakeClock
from parley.rpc import Channels, acting_for
from support.chatd.tools.kept_files import KeptFiles
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway

CHAT = ChatId("00000000-0000-0000-0000-0000000000aa")
OWNER = Owner(OwnerId(MEMBER.id), MEMBER.role)
#: A turn of a chat that uses the servers that are on by default.
CONTEXT = TurnContext(CHAT, OWNER, mcp_server_ids=None)


async def add_server(gateway: McpGateway, slug: str, url: str, **fields: Any) -> str:
    """Add a server, which chats use by default unless the fields say otherwise; return its id."""
    settings: dict[str, Any] = {
        "is_enabled": True,
        "availability": server_pb2.AVAILABILITY_DEFAULT_ON,
        **fields,
    }
    with acting_for(ADMIN):
        answer = await gateway.servers.CreateServer(
            servers_api.CreateServerRequest(
                request_id=slug,
                settings=server_pb2.McpServerSettings(slug=slug, url=url, **settings),
            )
        )
    return str(answer.server.server_id)


def tools_at(
    gateway: McpGateway, files: KeptFiles | None = None, clock: Clock | None = None
) -> McpTools:
    """Return the tools of a chatd that has no listing in its cache."""
    channels = Channels((gateway.settings.listen,), lambda _: gateway.chatd)
    return McpTools(channels, clock or FakeClock(), ResultFiles(files or KeptFiles()))


def execution_of(
    spec: ToolSpec,
    arguments: Mapping[str, object],
    execution_id: str = "e1",
    context: TurnContext = CONTEXT,
) -> Execution:
    """Return a call of a tool in a turn, as its owner dispatches it."""
    call = ToolCall("c1", spec.name, json.dumps(arguments), spec.server_id)
    generation = spec.journal_generation
    dispatch = Dispatch(ExecutionId(execution_id), call, Executor.MCPGATEWAY, generation)
    return Execution(context, 1, dispatch, spec)
