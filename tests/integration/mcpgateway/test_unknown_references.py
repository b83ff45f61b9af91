"""Prompts and resources that a server does not have: refused in its words, and asked for once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.rpc import Problem, acting_for, problem_of
from support.mcpgateway.everything_server import EverythingServer, everything_server
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway


@pytest.fixture
async def every() -> AsyncIterator[EverythingServer]:
    async with everything_server() as running:
        yield running


@pytest.fixture
async def gateway(
    tmp_path: Path, mcp_database: str, every: EverythingServer
) -> AsyncIterator[McpGateway]:
    async with mcp_gateway(tmp_path, mcp_database, allowed=every.place) as running:
        yield running


async def problem_with(call: Any) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return problem_of(caught.value)


async def test_what_a_server_does_not_have_is_refused_in_its_words_and_asked_for_once(
    gateway: McpGateway, every: EverythingServer
) -> None:
    asked: list[str] = []

    async def note(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        asked.append(ctx.method)
        return await call_next(ctx)

    every.server.middleware.append(note)
    settings = server_pb2.McpServerSettings(slug="every", url=every.url, is_enabled=True)
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            api.CreateServerRequest(request_id="create", settings=settings)
        )
    server_id = made.server.server_id
    with acting_for(MEMBER):
        no_prompt = await problem_with(
            gateway.tools.GetPrompt(tools_api.GetPromptRequest(server_id=server_id, name="x"))
        )
        no_resource = await problem_with(
            gateway.tools.ReadResource(
                tools_api.ReadResourceRequest(server_id=server_id, uri="memo://x")
            )
        )

    for problem in (no_prompt, no_resource):
        assert (problem.reason, problem.status) == (
            "REQUEST_REFUSED",
            grpc.StatusCode.INVALID_ARGUMENT,
        )
    # The SDK of the server says no more about prompts.
    assert "Internal server error" in no_prompt.message
    assert "memo://x" in no_resource.message
    assert (asked.count("prompts/get"), asked.count("resources/read")) == (1, 1)
