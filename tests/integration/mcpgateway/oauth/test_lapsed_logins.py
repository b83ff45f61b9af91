"""Calls of users whose login ended wait until they have connected again."""

import asyncio

import grpc
import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    InputAction,
    InputAnswer,
    InputRequired,
    Outcome,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId
from chatd.tools.mcpgateway import McpTools
from chatd.turns.engine.calls import CallLimits, OpenCall, ToolCaller, placeholder_spec
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import tool_pb2
from parley.clock import FakeClock
from parley.rpc import acting_for, problem_of
from support.mcpgateway.gateway import MEMBER
from support.mcpgateway.logins import CHAT, LoginLab
from support.mcpgateway.turn_tools import OWNER, execution_of, tools_at


async def last_of(
    lab: LoginLab,
    generation: str,
    answer: tool_pb2.InputAnswer | None = None,
    tool: str = "whoami",
) -> api.CallToolResponse:
    """Call a tool as chatd does, and return the last message."""
    request = api.CallToolRequest(
        key=api.CallKey(
            execution_id="call-1", chat_id="c", owner_epoch=1, journal_generation=generation
        ),
        context=CHAT,
        server_id=lab.server_id,
        original_name=tool,
        answer=answer,
    )
    with acting_for(MEMBER):
        return [each async for each in lab.gateway.runtime.CallTool(request)][-1]


def an_answer(question: int, action: "tool_pb2.InputAction.ValueType") -> tool_pb2.InputAnswer:
    return tool_pb2.InputAnswer(request_id=str(question), action=action)


@pytest.mark.parametrize("lapsed", ["at the server", "here"])
async def test_a_call_waits_until_its_user_has_connected_again(lab: LoginLab, lapsed: str) -> None:
    await lab.log_in()
    generation = (await lab.listed()).journal_generation
    if lapsed == "here":
        await lab.disconnect()
    else:
        lab.issuer.logins[0].is_revoked = True

    asked = (await last_of(lab, generation)).input_required
    assert (asked.request_id, asked.kind, asked.url) == (
        "1",
        tool_pb2.INPUT_KIND_LOGIN,
        f"https://parley.example/mcp/login/{lab.server_id}",
    )
    assert "onnect" in asked.message
    accept = tool_pb2.INPUT_ACTION_ACCEPT
    again = (await last_of(lab, generation, an_answer(1, accept))).input_required
    assert (again.request_id, again.url) == ("2", asked.url)
    await lab.log_in()
    done = (await last_of(lab, generation, an_answer(2, accept))).result
    assert (done.outcome, lab.issuer.calls) == (tool_pb2.CALL_OUTCOME_SUCCEEDED, ["alice"])


async def test_a_call_whose_user_does_not_connect_fails(lab: LoginLab) -> None:
    await lab.log_in()
    generation = (await lab.listed()).journal_generation
    lab.issuer.logins[0].is_revoked = True
    await last_of(lab, generation)
    refused = an_answer(1, tool_pb2.INPUT_ACTION_DECLINE)
    ended = (await last_of(lab, generation, refused)).result
    assert (ended.outcome, ended.may_have_executed, lab.issuer.calls) == (
        tool_pb2.CALL_OUTCOME_FAILED,
        False,
        [],
    )


async def resumed(
    tools: McpTools, context: TurnContext, dispatch: Dispatch, question_id: str
) -> Outcome | InputRequired:
    """Continue a call as a turn does whose catalogue lacks the tool: a person accepted."""
    caller = ToolCaller(tools, may_act=lambda: True, clock=FakeClock(), limits=CallLimits())
    execution = Execution(context, 1, dispatch, placeholder_spec(dispatch))
    answer = InputAnswer(question_id, InputAction.ACCEPT)
    return await caller.run(OpenCall(execution, is_new=False, is_offered=False, answer=answer))


async def test_a_person_who_accepts_before_they_connect_is_asked_again(lab: LoginLab) -> None:
    tools = tools_at(lab.gateway)
    context = TurnContext(ChatId("c"), OWNER, mcp_server_ids=(lab.server_id,))
    await lab.log_in()
    async with asyncio.timeout(60):
        specs = {spec.original_name: spec for spec in await tools.list_tools(context)}
        spec = specs["whoami"]
        execution = execution_of(spec, {}, "call-1", context)
        await lab.disconnect()
        asked = await tools.execute(execution)
        assert isinstance(asked, InputRequired)
        tools.forget_catalogues()
        assert await tools.list_tools(context) == ()

        again = await resumed(tools, context, execution.dispatch, asked.request_id)
        assert isinstance(again, InputRequired)
        assert again.request_id != asked.request_id
        await lab.log_in()
        done = await resumed(tools, context, execution.dispatch, again.request_id)

    assert isinstance(done, Outcome)
    assert (done.outcome, lab.issuer.calls) == (ToolOutcome.DONE, ["alice"])


async def test_without_the_name_of_a_tool_no_call_is_started(lab: LoginLab) -> None:
    await lab.log_in()
    generation = (await lab.listed()).journal_generation
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await last_of(lab, generation, tool="")

    assert problem_of(caught.value).reason == "CALL_NOT_FOUND"
    assert lab.issuer.calls == []
