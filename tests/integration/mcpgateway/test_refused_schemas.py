"""Tools of a server whose definitions a provider refuses, in a turn."""

import json
from pathlib import Path
from typing import Any

import pytest

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tool_servers import server_notices
from chatd.content.domain.tools import Dispatch, Execution, Executor, Outcome
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.clock import FakeClock
from parley.rpc import Channels, acting_for
from parley.tool_schemas import SchemaDialect, normalised
from support.chatd.tools.kept_files import KeptFiles
from support.host.ports import free_port
from support.mcpgateway.gateway import ADMIN, MEMBER, mcp_gateway
from support.mcpgateway.servers import raw_server
from support.mcpgateway.stream_server import DEEP

CONTEXT = TurnContext(
    ChatId("00000000-0000-0000-0000-0000000000aa"),
    Owner(OwnerId(MEMBER.id), MEMBER.role),
    mcp_server_ids=None,
)
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
}
QUERY = {"type": "object", "properties": {"$filter": {"type": "string"}}, "required": ["$filter"]}
#: Schemas that no provider can be given, as they are sent.
BROKEN = {
    "reference": '{"type": "object", "properties": {"a": {"$ref": "#/$defs/absent"}}}',
    "depth": DEEP,
}


class Server:
    """Offers a tool whose argument a provider refuses, and one that nobody can be given."""

    def __init__(self, broken: str) -> None:
        self.calls: list[Any] = []
        self._broken = broken

    def answer(self, request: bytes) -> bytes:
        """Answer one HTTP request."""
        asked = json.loads(request.partition(b"\r\n\r\n")[2])
        result: dict[str, Any] = DISCOVERED
        if asked["method"] == "tools/list":
            tools = {"query": QUERY, "broken": "BROKEN"}
            listed = [{"name": name, "inputSchema": schema} for name, schema in tools.items()]
            result = DISCOVERED | {"tools": listed}
        if asked["method"] == "tools/call":
            self.calls.append(asked["params"]["arguments"])
            result = {"content": [{"type": "text", "text": "ok"}], "resultType": "complete"}
        text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        body = text.replace('"BROKEN"', self._broken).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return head % len(body) + body


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_tool_that_no_provider_can_be_given_is_left_out_and_others_are_called(
    broken: str, tmp_path: Path, mcp_database: str
) -> None:
    port, server = free_port(), Server(BROKEN[broken])
    settings = server_pb2.McpServerSettings(
        slug="data",
        display_name="Data",
        url=f"http://127.0.0.1:{port}/mcp",
        is_enabled=True,
        availability=server_pb2.AVAILABILITY_DEFAULT_ON,
    )
    async with (
        raw_server(port, server.answer),
        mcp_gateway(tmp_path, mcp_database, allowed=f"127.0.0.1:{port}") as gateway,
    ):
        with acting_for(ADMIN):
            await gateway.servers.CreateServer(
                servers_api.CreateServerRequest(request_id="create", settings=settings)
            )
        channels = Channels((gateway.settings.listen,), lambda _: gateway.chatd)
        tools = McpTools(channels, FakeClock(), ResultFiles(KeptFiles()))
        (spec,) = await tools.list_tools(CONTEXT)
        reports = await tools.reports(CONTEXT)
        schema = normalised(spec.input_schema_json, SchemaDialect.ANTHROPIC)
        (name,) = schema["properties"]
        call = ToolCall("c1", spec.name, json.dumps({name: "x"}), spec.server_id)
        dispatch = Dispatch(ExecutionId("e1"), call, Executor.MCPGATEWAY, spec.journal_generation)
        outcome = await tools.execute(Execution(CONTEXT, 1, dispatch, spec))

    assert (spec.name, name, schema["required"]) == ("data__query", "_filter", ["_filter"])
    notice = "1 tool of the MCP server Data cannot be used: invalid or too large definitions."
    assert server_notices(reports) == (notice,)
    assert isinstance(outcome, Outcome)
    assert (outcome.outcome, server.calls) == (ToolOutcome.DONE, [{"$filter": "x"}])
