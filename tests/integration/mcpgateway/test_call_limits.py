"""Limits of calls that never end: real servers of each kind, which see that they are cancelled."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason
from parley.rpc import acting_for
from support.host.ports import free_port
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.server_calls import called
from support.mcpgateway.servers import START_S_MAX, kind_process, until_listening
from support.mcpgateway.session_calls import KINDS, place_of

pytestmark = pytest.mark.slow

IDLE_MS, LIMIT_MS = 2_000, 6_000
LIMITS = server_pb2.McpServerLimits(idle_timeout_ms=IDLE_MS, call_timeout_ms=LIMIT_MS)
TRANSPORTS = {"sse": server_pb2.TRANSPORT_SSE}
CHAT = api.ChatContext(chat_id="chat-1", root_chat_id="chat-1")


@dataclass(frozen=True, slots=True)
class Lab:
    """A mcpgateway, and the ids of a server of each kind."""

    gateway: McpGateway
    server_ids: dict[str, str]
    generation: str

    async def call(self, kind: str, tool: str) -> list[api.CallToolResponse]:
        """Call a tool as a turn does, and return all that is said about it."""
        request = api.CallToolRequest(
            key=api.CallKey(
                execution_id=f"{kind}-{tool}",
                chat_id="chat-1",
                owner_epoch=1,
                journal_generation=self.generation,
            ),
            context=CHAT,
            server_id=self.server_ids[kind],
            original_name=tool,
            arguments_json=b"{}",
        )
        with acting_for(MEMBER):
            stream = self.gateway.runtime.CallTool(request, timeout=START_S_MAX)
            return [response async for response in stream]

    async def until_once(self, kind: str, what: str) -> None:
        """Wait until a server says that something happened to it, and once only."""
        server_id = self.server_ids[kind]
        for number in count():
            request_id = f"{kind}-{what}-{number}"
            said = await called(self.gateway, MEMBER, server_id, "count", request_id, what=what)
            (part,) = json.loads(said.content_json)
            if part["text"] != "0":
                assert (kind, what, part["text"]) == (kind, what, "1")
                return


@pytest.fixture
async def lab(tmp_path: Path, mcp_database: str) -> AsyncIterator[Lab]:
    ports = {kind: free_port() for kind in KINDS}
    with ExitStack() as processes:
        for kind, port in ports.items():
            processes.enter_context(kind_process(port, kind))
        for port in ports.values():
            await until_listening(port)
        async with mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway:
            server_ids = {kind: await created(gateway, kind, ports[kind]) for kind in KINDS}
            with acting_for(MEMBER):
                listing = await gateway.runtime.ListTools(
                    api.ListToolsRequest(context=CHAT, server_ids=list(server_ids.values()))
                )
            yield Lab(gateway, server_ids, listing.journal_generation)


async def created(gateway: McpGateway, kind: str, port: int) -> str:
    settings = server_pb2.McpServerSettings(
        slug=kind,
        url=place_of(kind, port)[0],
        transport=TRANSPORTS.get(kind, server_pb2.TRANSPORT_STREAMABLE_HTTP),
        is_enabled=True,
        limits=LIMITS,
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            servers_api.CreateServerRequest(request_id=kind, settings=settings)
        )
    return str(made.server.server_id)


def duration_of(result: tool_pb2.CallResult) -> timedelta:
    return result.finished_at.ToDatetime() - result.started_at.ToDatetime()


async def test_progress_puts_off_the_idle_limit_and_not_the_hard_one_and_servers_see_the_end(
    lab: Lab,
) -> None:
    async with asyncio.timeout(START_S_MAX), asyncio.TaskGroup() as tasks:
        silent = {kind: tasks.create_task(lab.call(kind, "hold")) for kind in KINDS}
        talking = {kind: tasks.create_task(lab.call(kind, "talk")) for kind in KINDS}
    idle, limit = timedelta(milliseconds=IDLE_MS), timedelta(milliseconds=LIMIT_MS)
    for kind in KINDS:
        quiet, loud = silent[kind].result()[-1].result, talking[kind].result()[-1].result
        assert (kind, quiet.outcome, quiet.reason, quiet.may_have_executed) == (
            kind,
            tool_pb2.CALL_OUTCOME_TIMED_OUT,
            ErrorReason.ERROR_REASON_IDLE_TIMEOUT,
            True,
        )
        assert (kind, loud.outcome, loud.reason, loud.may_have_executed) == (
            kind,
            tool_pb2.CALL_OUTCOME_TIMED_OUT,
            ErrorReason.ERROR_REASON_CALL_TIMEOUT,
            True,
        )
        assert idle <= duration_of(quiet) < limit <= duration_of(loud)
        # Progress went on until the end.
        assert talking[kind].result()[-2].progress.progress > LIMIT_MS / 1000
        async with asyncio.timeout(START_S_MAX):
            await lab.until_once(kind, "cancelled")
            await lab.until_once(kind, "silenced")
