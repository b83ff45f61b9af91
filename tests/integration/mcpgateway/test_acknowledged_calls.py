"""Calls that chatd acknowledged to a real mcpgateway are never made again."""

import asyncio
from dataclasses import replace

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Ended,
    Execution,
    InputRequired,
    Outcome,
    Untraceable,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ExecutionId
from chatd.tools.mcpgateway import McpTools
from chatd.turns.engine.calls import CallLimits, OpenCall, ToolCaller
from parley.clock import FakeClock
from parley.postgres import Database
from support.mcpgateway.gateway import McpGateway
from support.mcpgateway.stored_calls import delete_acknowledged
from support.mcpgateway.turn_tools import CHAT, OWNER, execution_of, tools_at

CONTEXT = TurnContext(CHAT, OWNER)


async def dispatched(tools: McpTools, name: str) -> Execution:
    (spec,) = [
        each for each in await tools.list_tools(CONTEXT) if each.original_name == "get_current_time"
    ]
    return execution_of(spec, {"timezone": "UTC"}, name, CONTEXT)


async def taken_over(tools: McpTools, execution: Execution) -> Outcome | InputRequired:
    """Complete a dispatched call as the next owner of its chat does."""
    caller = ToolCaller(tools, may_act=lambda: True, clock=FakeClock(), limits=CallLimits())
    return await caller.run(OpenCall(replace(execution, owner_epoch=2), is_new=False))


async def test_a_restored_older_database_does_not_make_an_acknowledged_call_again(
    gateway: McpGateway, database: Database
) -> None:
    tools = tools_at(gateway)
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
