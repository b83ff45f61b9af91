"""The search for tools while a source of them is away."""

import json
from dataclasses import dataclass

import grpc
import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    FIND_TOOLS,
    Dispatch,
    Execution,
    Executor,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.find_tools import INCOMPLETE, SearchingTools
from chatd.tools.local import LocalTools

ECHO = ToolSpec("plain__echo", "Repeat a text.", "{}", Executor.MCPGATEWAY, server_id="plain")
AWAY = grpc.aio.AioRpcError(
    grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "no node"
)

#: What the tools of mcpgateway raise while none answers.
UNRESOLVED = ModelError(ErrorKind.GENERIC, "try again", is_retryable=True)


@dataclass(frozen=True, slots=True)
class Source:
    """Tools that can be listed, or a source that is away."""

    listed: tuple[ToolSpec, ...] | Exception

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        if isinstance(self.listed, Exception):
            raise self.listed
        return self.listed

    async def execute(self, execution: Execution) -> Outcome:
        raise AssertionError(execution)

    async def find(self, execution: Execution) -> NeverSeen:
        raise AssertionError(execution)

    async def cancel(self, execution: Execution) -> None:
        raise AssertionError(execution)


@pytest.mark.parametrize("listed", [(), AWAY, UNRESOLVED], ids=["there", "away", "unresolved"])
async def test_a_source_that_cannot_be_listed_is_left_out(
    listed: tuple[ToolSpec, ...] | Exception,
) -> None:
    sources = [Source(listed), Source((ECHO,))]
    searching = SearchingTools(LocalTools(()), *sources)
    call = ToolCall("c", FIND_TOOLS, json.dumps({"queries": ["repeat"]}))
    dispatch = Dispatch(ExecutionId("e"), call, Executor.CHATD, "")
    context = TurnContext(ChatId("c"), Owner(OwnerId("a"), "member"))
    found = await searching.execute(Execution(context, 1, dispatch, ECHO))
    assert isinstance(found, Outcome)
    assert found.outcome is ToolOutcome.DONE
    told = json.loads(found.result_json)
    assert [tool["name"] for tool in told["tools"]] == ["plain__echo"]
    assert told.get("warning") == (INCOMPLETE if isinstance(listed, Exception) else None)
