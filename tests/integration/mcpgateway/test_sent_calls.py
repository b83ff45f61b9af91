"""What of a call reaches its server: the server's own name, and the tool's own arguments."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome
from support.host.ports import free_port
from support.mcpgateway.everything_server import everything, served
from support.mcpgateway.gateway import mcp_gateway
from support.mcpgateway.turn_tools import CONTEXT, add_server, execution_of, tools_at

NAME = "notes.add: one more, with a name that is longer than models may be offered"


@dataclass(slots=True)
class HeardCalls:
    """Stands before a server, and keeps what calls of tools it gets."""

    application: ASGIApp
    calls: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        body = b""

        async def receiving() -> Message:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            if body and message["type"] == "http.request" and not message.get("more_body"):
                sent = json.loads(body)
                if sent.get("method") == "tools/call":
                    self.calls.append(sent["params"])
            return message

        await self.application(scope, receiving, send)


@asynccontextmanager
async def listening_server() -> AsyncIterator[tuple[str, HeardCalls]]:
    """Serve tools with names that models cannot be offered; yield the address and the calls."""
    port = free_port()
    made = everything(f"http://127.0.0.1:{port}/mcp")
    made.server.add_tool(lambda text: text, name=NAME, description="Add a note.")
    heard = HeardCalls(made.server.streamable_http_app())
    async with served(heard, port):
        yield made.url, heard


async def test_a_server_gets_its_own_name_and_arguments_and_no_intent(
    tmp_path: Path, mcp_database: str
) -> None:
    given = {"text": "milk", "model_intent": "Writing a note"}
    async with (
        listening_server() as (url, heard),
        mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway,
    ):
        await add_server(gateway, "notes", url)
        tools = tools_at(gateway)
        listed = await tools.list_tools(CONTEXT)
        (spec,) = [each for each in listed if each.original_name == NAME]
        outcome = await tools.execute(execution_of(spec, given))
    assert isinstance(outcome, Outcome)
    assert (outcome.outcome, "milk" in outcome.result_json) == (ToolOutcome.DONE, True)
    assert len(spec.name) <= 64
    assert spec.name.startswith("notes__notes_add")
    (sent,) = heard.calls
    assert (sent["name"], sent["arguments"]) == (NAME, {"text": "milk"})
