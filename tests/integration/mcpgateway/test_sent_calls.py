"""What of a call reaches its server: the server's own name, and the tool's own arguments."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import Dispatch, Execution, Executor, Outcome
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.clock import FakeClock
from parley.rpc import Channels, acting_for
from support.chatd.tools.kept_files import KeptFiles
from support.host.ports import free_port
from support.mcpgateway.everything_server import everything, served
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway

NAME = "notes.add: one more, with a name that is longer than models may be offered"
CONTEXT = TurnContext(
    ChatId("00000000-0000-0000-0000-0000000000aa"),
    Owner(OwnerId(MEMBER.id), MEMBER.role),
    mcp_server_ids=None,
)


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


async def create(gateway: McpGateway, url: str) -> None:
    settings = server_pb2.McpServerSettings(
        slug="notes",
        url=url,
        is_enabled=True,
        availability=server_pb2.AVAILABILITY_DEFAULT_ON,
    )
    with acting_for(ADMIN):
        await gateway.servers.CreateServer(
            servers_api.CreateServerRequest(request_id="create", settings=settings)
        )


async def test_a_server_gets_its_own_name_and_arguments_and_no_intent(
    tmp_path: Path, mcp_database: str
) -> None:
    given = {"text": "milk", "model_intent": "Writing a note"}
    async with (
        listening_server() as (url, heard),
        mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway,
    ):
        await create(gateway, url)
        channels = Channels((gateway.settings.listen,), lambda _: gateway.chatd)
        tools = McpTools(channels, FakeClock(), ResultFiles(KeptFiles()))
        listed = await tools.list_tools(CONTEXT)
        (spec,) = [each for each in listed if each.original_name == NAME]
        call = ToolCall("c1", spec.name, json.dumps(given), spec.server_id)
        dispatch = Dispatch(ExecutionId("e1"), call, Executor.MCPGATEWAY, spec.journal_generation)
        outcome = await tools.execute(Execution(CONTEXT, 1, dispatch, spec))
    assert isinstance(outcome, Outcome)
    assert (outcome.outcome, "milk" in outcome.result_json) == (ToolOutcome.DONE, True)
    assert len(spec.name) <= 64
    assert spec.name.startswith("notes__notes_add")
    (sent,) = heard.calls
    assert (sent["name"], sent["arguments"]) == (NAME, {"text": "milk"})
