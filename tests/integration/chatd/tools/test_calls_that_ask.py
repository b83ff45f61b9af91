"""Executors whose calls ask: in memory as the tests of turns use it, and behind gRPC."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Ended,
    Execution,
    Executor,
    InputAction,
    InputAnswer,
    InputRequired,
    NeverSeen,
    Outcome,
    PendingKind,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId
from support.chatd.turns.journaling_tools import JournalingTools
from support.mcpgateway.asking_runtime import OWNER, asking_mcp_tools

CHAT = ChatId("00000000-0000-0000-0000-0000000000aa")
SPEC = ToolSpec("one", "", "{}", Executor.MCPGATEWAY, "j1", original_name="one")
WHICH = InputRequired("r1", PendingKind.ELICITATION, "Which?", '{"type": "object"}', expires_s=60.0)
LOGIN = InputRequired("r2", PendingKind.LOGIN, "Sign in.", url="https://example.com/login")
FIRST = InputAnswer("r1", InputAction.ACCEPT, '{"name": "x"}')
SECOND = InputAnswer("r2", InputAction.DECLINE)
CALL = Execution(
    TurnContext(CHAT, OWNER),
    1,
    Dispatch(ExecutionId("e1"), ToolCall("call", "one", "{}"), Executor.MCPGATEWAY, "j1"),
    SPEC,
)


@dataclass(frozen=True, slots=True)
class Asking:
    """An executor, and its journal."""

    tools: Tools
    journal: JournalingTools

    async def outcome(self, answer: InputAnswer | None = None) -> ToolOutcome | InputRequired:
        """Return how the call ends, or what it asks."""
        async with asyncio.timeout(30):
            told = await self.tools.execute(replace(CALL, answer=answer))
        return told.outcome if isinstance(told, Outcome) else told

    async def found(self) -> object:
        """Return where the call is; an outcome by its kind alone."""
        found = await self.tools.find(CALL)
        return found.outcome.outcome if isinstance(found, Ended) else found


@pytest.fixture(params=["in memory", "over grpc"])
async def asking(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Asking]:
    journal = JournalingTools(SPEC)
    journal.questions["one"] = (WHICH, LOGIN)
    if request.param == "in memory":
        yield Asking(journal, journal)
    else:
        async with asking_mcp_tools(journal, tmp_path) as tools:
            yield Asking(tools, journal)


async def test_a_call_asks_until_everything_is_answered_and_is_started_once(
    asking: Asking,
) -> None:
    assert await asking.outcome() == WHICH
    assert await asking.found() == WHICH
    assert await asking.outcome() == WHICH
    assert await asking.outcome(FIRST) == LOGIN
    assert await asking.found() == LOGIN
    assert await asking.outcome(SECOND) is ToolOutcome.DONE
    assert await asking.found() is ToolOutcome.DONE
    assert (asking.journal.told, asking.journal.starts[ExecutionId("e1")]) == ([FIRST, SECOND], 1)


async def test_an_answer_that_is_repeated_or_to_something_else_is_ignored(asking: Asking) -> None:
    await asking.outcome()
    assert await asking.outcome(SECOND) == WHICH
    assert await asking.outcome(FIRST) == LOGIN
    assert await asking.outcome(FIRST) == LOGIN
    assert asking.journal.told == [FIRST]


async def test_an_answer_never_starts_a_call(asking: Asking) -> None:
    assert await asking.outcome(FIRST) is ToolOutcome.UNKNOWN
    assert await asking.found() == NeverSeen()
    assert asking.journal.starts.total() == 0


async def test_a_call_whose_session_died_is_unknown_whatever_is_answered(asking: Asking) -> None:
    await asking.outcome()
    asking.journal.lose_sessions()
    assert await asking.found() is ToolOutcome.UNKNOWN
    assert await asking.outcome(FIRST) is ToolOutcome.UNKNOWN
    assert asking.journal.told == []


async def test_a_call_that_asks_can_be_cancelled(asking: Asking) -> None:
    await asking.outcome()
    await asking.tools.cancel(CALL)
    assert await asking.found() is ToolOutcome.CANCELLED
    assert await asking.outcome(FIRST) is ToolOutcome.CANCELLED
