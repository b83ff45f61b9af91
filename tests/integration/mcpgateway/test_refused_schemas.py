"""Tools of a server whose definitions a provider refuses, in a turn."""

import json
from pathlib import Path
from typing import Any

import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tool_servers import server_notices
from chatd.content.domain.tools import Outcome
from parley.tool_schemas import SchemaDialect, normalised
from support.host.ports import free_port
from support.mcpgateway.gateway import mcp_gateway
from support.mcpgateway.servers import raw_server
from support.mcpgateway.stream_server import DEEP
from support.mcpgateway.turn_tools import CONTEXT, add_server, execution_of, tools_at

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
    async with (
        raw_server(port, server.answer),
        mcp_gateway(tmp_path, mcp_database, allowed=f"127.0.0.1:{port}") as gateway,
    ):
        await add_server(gateway, "data", f"http://127.0.0.1:{port}/mcp", display_name="Data")
        tools = tools_at(gateway)
        (spec,) = await tools.list_tools(CONTEXT)
        reports = await tools.reports(CONTEXT)
        schema = normalised(spec.input_schema_json, SchemaDialect.ANTHROPIC)
        (name,) = schema["properties"]
        outcome = await tools.execute(execution_of(spec, {name: "x"}))

    assert (spec.name, name, schema["required"]) == ("data__query", "_filter", ["_filter"])
    notice = "1 tool of the MCP server Data cannot be used: invalid or too large definitions."
    assert server_notices(reports) == (notice,)
    assert isinstance(outcome, Outcome)
    assert (outcome.outcome, server.calls) == (ToolOutcome.DONE, [{"$filter": "x"}])
