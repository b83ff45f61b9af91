"""Servers that another process switched off, while this one still has them in memory."""

import asyncio
from typing import Any

import grpc
import pytest

from mcpgateway.client.call import CallRecord, Outcome
from mcpgateway.client.questions import Answer, AnswerAction
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.call_starter import CallStarter
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.running_call import PreparedCall
from mcpgateway.runtime.start_queue import StartQueue
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import ServerDisabled, UpstreamFailed
from mcpgateway.servers.known_servers import KnownServers
from mcpgateway.servers.store import Servers
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.clock import FakeClock
from parley.postgres import Database
from parley.rpc import acting_for, problem_of
from support.host.supervised import supervision
from support.mcpgateway.gateway import MEMBER, McpGateway
from support.mcpgateway.scripted_upstream import ScriptedCall, ScriptedUpstream
from support.mcpgateway.values import SERVER_ID, a_server, a_target, an_order

#: Without a notice, as if it was lost.
SWITCH_OFF = "UPDATE mcp.servers SET is_enabled = false, version = version + 1"


async def test_resources_and_prompts_are_not_asked_of_a_server_that_was_switched_off(
    gateway: McpGateway, database: Database
) -> None:
    server_id = str(await database.pool.fetchval("SELECT id FROM mcp.servers"))
    requests: list[tuple[Any, Any]] = [
        (gateway.tools.ListResources, tools_api.ListResourcesRequest(server_id=server_id)),
        (
            gateway.tools.ReadResource,
            tools_api.ReadResourceRequest(server_id=server_id, uri="memo://note"),
        ),
        (gateway.tools.ListServerPrompts, tools_api.ListServerPromptsRequest(server_id=server_id)),
        (
            gateway.tools.GetPrompt,
            tools_api.GetPromptRequest(server_id=server_id, name="greet", arguments={}),
        ),
    ]
    for method, request in requests:
        with acting_for(MEMBER):
            await gateway.tools.ListServerTools(
                tools_api.ListServerToolsRequest(server_id=server_id)
            )
            await database.pool.execute(SWITCH_OFF)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await method(request)
        assert problem_of(refused.value).reason == "SERVER_DISABLED"
        await database.pool.execute("UPDATE mcp.servers SET is_enabled = true")


async def test_a_call_that_waited_for_a_login_is_not_made_to_a_server_that_was_switched_off(
    journal: Journal, servers: Servers, database: Database
) -> None:
    await servers.ensure(SERVER_ID, a_server().settings)
    known = KnownServers(servers, FakeClock())
    refusal = UpstreamFailed(Reason.NEEDS_RECONNECT, "log in again")
    upstream = ScriptedUpstream(calls=[ScriptedCall(refusal)])

    async def prepare() -> PreparedCall:
        server = (await known.find([SERVER_ID]))[SERVER_ID]
        if not server.settings.is_enabled:
            raise ServerDisabled(SERVER_ID)
        return PreparedCall(a_target(server), server_version=server.version)

    async def last(record: CallRecord) -> CallRecord:
        updates = [each async for each in executor.follow(record)]
        assert isinstance(updates[-1], CallRecord)
        return updates[-1]

    async with (
        asyncio.timeout(20),
        CallExecutor.open(
            journal, upstream, supervision(FakeClock()), lambda _: "https://parley.example/login"
        ) as executor,
    ):
        starter = CallStarter(executor, StartQueue(), known)
        opened = await starter.start(an_order(), prepare, lambda _: an_order(), may_ask=True)
        asking = await last(opened.record)
        assert asking.question is not None
        await database.pool.execute(SWITCH_OFF)
        await executor.answer("call-1", asking.question.id, Answer(AnswerAction.ACCEPT))
        ended = await last(opened.record)
    assert ended.end is not None
    assert (ended.end.outcome, ended.end.message) == (
        Outcome.FAILED,
        str(ServerDisabled(SERVER_ID)),
    )
    assert len(upstream.called) == 1
