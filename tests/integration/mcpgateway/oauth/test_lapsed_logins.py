"""Calls of users whose login ended wait until they have connected again."""

import pytest

from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import tool_pb2
from parley.rpc import acting_for
from support.mcpgateway.gateway import MEMBER
from support.mcpgateway.logins import CHAT, LoginLab


async def last_of(
    lab: LoginLab, generation: str, answer: tool_pb2.InputAnswer | None = None
) -> api.CallToolResponse:
    """Call `whoami` as chatd does, and return the last message."""
    request = api.CallToolRequest(
        key=api.CallKey(
            execution_id="call-1", chat_id="c", owner_epoch=1, journal_generation=generation
        ),
        context=CHAT,
        server_id=lab.server_id,
        original_name="whoami",
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
