"""Calls that chatd acknowledged to a real mcpgateway are never made again."""

import asyncio
from dataclasses import replace

import grpc

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Dispatch,
    Ended,
    Execution,
    Executor,
    InputRequired,
    Outcome,
    Untraceable,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from chatd.turns.engine.calls import CallLimits, OpenCall, ToolCaller
from parley.clock import FakeClock
from parley.postgres import Database
from parley.rpc import Channels
from support.chatd.tools.kept_files import KeptFiles
from support.mcpgateway.gateway import MEMBER, McpGateway
from support.mcpgateway.stored_calls import delete_acknowledged

CHAT = ChatId("00000000-0000-0000-0000-0000000000aa")
CONTEXT = TurnContext(CHAT, Owner(OwnerId(MEMBER.id), MEMBER.role))


async def dispatched(tools: McpTools, name: str) -> Execution:
    (spec,) = [
        each for each in await tools.list_tools(CONTEXT) if each.original_name == "get_current_time"
    ]
    call = ToolCall("call", spec.name, '{"timezone": "UTC"}', spec.server_id)
    dispatch = Dispatch(ExecutionId(name), call, Executor.MCPGATEWAY, spec.journal_generation)
    return Execution(CONTEXT, 1, dispatch, spec)


async def taken_over(tools: McpTools, execution: Execution) -> Outcome | InputRequired:
    """Complete a dispatched call as the next owner of its chat does."""
    caller = ToolCaller(tools, may_act=lambda: True, clock=FakeClock(), limits=CallLimits())
    return await caller.run(OpenCall(replace(execution, owner_epoch=2), is_new=False))


async def test_a_restored_older_database_does_not_make_an_acknowledged_call_again(
    gateway: McpGateway, database: Database
) -> None:
    def channel(address: object) -> grpc.aio.Channel:
        return gateway.chatd

    tools = McpTools(
        Channels((gateway.settings.listen,), channel), FakeClock(), ResultFiles(KeptFiles())
    )
    async with asyncio.timeout(30):
        execution = await dispatched(tools, "done")
        first = await tools.execute(execution)
        assert isinstance(first, Outcome)
        assert first.outcome is ToolOutcome.DONE
        # A chatd that was killed before it acknowledged loses nothing.
        assert await tools.find(execution) == Ended(first)
        assert await taken_over(tools, execution) == first

        generation = execution.dispatch.journal_generation
        await tools.acknowledge("another journal", [ExecutionId("done")])
        assert await tools.find(replace(execution, owner_epoch=2)) == Ended(first)
        await tools.acknowledge(generation, [ExecutionId("done"), ExecutionId("never")])
        assert await tools.find(replace(execution, owner_epoch=2)) == Untraceable()
        await delete_acknowledged(database)

        assert await taken_over(tools, execution) == UNKNOWN_OUTCOME
        assert await tools.execute(replace(execution, owner_epoch=2)) == UNKNOWN_OUTCOME
        assert await database.pool.fetchval("SELECT count(*) FROM mcp.calls") == 0
