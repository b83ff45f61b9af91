"""Which tool is called."""

import pytest

from parley.testing.llm_mock.behaviour.options import Behaviour
from parley.testing.llm_mock.exchange.reply import reply_to
from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition

ZONED = {"properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"]}
TOOLS = (ToolDefinition("execute", None), ToolDefinition("time__now", ZONED))


@pytest.mark.parametrize(
    ("behaviour", "called"),
    [
        (Behaviour(tools=1), [("execute", "{}")]),
        (Behaviour(tool_like="*now"), [("time__now", '{"zone":"UTC"}')]),
        (Behaviour(tool_like="exec*", args="[]"), [("execute", "[]")]),
        (Behaviour(tools=2, tool_like="none*"), []),
        (Behaviour(tool="absent"), [("absent", "{}")]),
        (Behaviour(), []),
    ],
)
def test_the_first_offered_tool_that_is_like_the_pattern_is_called(
    behaviour: Behaviour, called: list[tuple[str, str]]
) -> None:
    reply = reply_to(ParsedRequest("mock", True, "hello", tools=TOOLS), behaviour, seed=0)
    assert [(call.name, call.args) for call in reply.calls] == called


def test_without_tools_there_is_nobody_to_call() -> None:
    reply = reply_to(
        ParsedRequest("mock", True, "hello"), Behaviour(tools=1, tool_like="*"), seed=0
    )
    assert reply.calls == ()
