"""The context of a turn: the one value by which tools are offered and executed."""

from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Execution, Found, NeverSeen, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId
from support.chatd.turns.turn_stage import ANN, CHAT, SETUP, Stage, calling, tool

PARENT, ROOT = ChatId("parent"), ChatId("root")
CALL = ToolCall("a", "look", "{}")


class NotingTools:
    """Offers one tool, and notes the contexts in which it is offered and executed."""

    def __init__(self) -> None:
        self.offered: list[TurnContext] = []
        self.executed: list[TurnContext] = []
        self.prompts: list[tuple[PromptMessage, ...]] = []

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        self.offered.append(context)
        return (tool("look"),)

    async def execute(self, execution: Execution) -> Outcome:
        self.executed.append(execution.context)
        self.prompts.append(execution.context.prompt())
        return Outcome(ToolOutcome.DONE, "{}")

    async def find(self, execution: Execution) -> Found:
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        raise AssertionError(execution)


async def test_tools_are_offered_and_executed_with_the_context_of_their_turn() -> None:
    tools = NotingTools()
    setup = replace(
        SETUP,
        mode=ChatMode.PLAN,
        ancestor_ids=(PARENT, ROOT),
        mcp_server_ids=("s1",),
        workspace_id="w1",
    )
    stage = Stage(calling(CALL), setup=setup, other_tools=tools)
    await stage.ask()

    (offered,), (executed,) = tools.offered, tools.executed
    for context in (offered, executed):
        assert (context.chat_id, context.owner, context.mode) == (CHAT, ANN, ChatMode.PLAN)
        assert (context.root_chat_id, context.is_child) == (ROOT, True)
        assert (context.mcp_server_ids, context.workspace_id) == (("s1",), "w1")
        assert (context.model_id, context.turn_id) == (SETUP.model.id, 1)
    assert (offered.step, executed.step) == (0, 1)
    # The prompt that the model saw before it made the call.
    assert tools.prompts == [stage.model.requests[0].messages]
    with pytest.raises(FrozenInstanceError):
        cast(Any, executed).step = 2
