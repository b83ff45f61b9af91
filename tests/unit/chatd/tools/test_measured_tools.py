"""What is counted of calls of tools, as a scraper reads it."""

import json
from dataclasses import dataclass, field

import pytest

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    ExecutorUnreachable,
    Found,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.metrics import MeasuredTools
from parley.clock import FakeClock
from parley.telemetry import InMemoryTelemetry

OWNER = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")


@dataclass
class Answering:
    """Tools that take a second and answer what they are told to."""

    clock: FakeClock
    answers: list[Outcome | Exception] = field(default_factory=list)

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return ()

    async def execute(self, execution: Execution) -> Outcome:
        self.clock.advance(1.0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def find(self, execution: Execution) -> Found:
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        return None


def execution(name: str, executor: Executor = Executor.TOOLRUNNER) -> Execution:
    call = ToolCall("call", name, "{}")
    spec = ToolSpec(name, "", "{}", executor)
    return Execution(
        TurnContext(ChatId("c"), OWNER), 1, Dispatch(ExecutionId("e"), call, executor, "g"), spec
    )


async def test_calls_are_counted_by_tool_and_outcome_with_their_sizes_and_what_was_cut() -> None:
    clock, shown = FakeClock(), InMemoryTelemetry().telemetry
    cut = json.dumps({"ok": True, "truncation": {"omitted_bytes": 5}})
    mentions = json.dumps({"ok": True, "output": cut})
    tools = Answering(
        clock,
        [
            Outcome(ToolOutcome.DONE, cut),
            Outcome(ToolOutcome.DONE, mentions),
            Outcome(ToolOutcome.FAILED, "{}"),
            ExecutorUnreachable(Executor.TOOLRUNNER),
            ZeroDivisionError(),
            Outcome(ToolOutcome.DONE, "[]"),
        ],
    )
    measured = MeasuredTools(tools, clock)
    end = measured.publish(shown)
    for _ in range(3):
        await measured.execute(execution("execute"))
    with pytest.raises(ExecutorUnreachable):
        await measured.execute(execution("execute"))
    with pytest.raises(ZeroDivisionError):
        await measured.execute(execution("execute"))
    await measured.execute(execution("files__read", Executor.MCPGATEWAY))

    told = shown.metrics_text()
    counted = {
        (tool, ended): f'_duration_seconds_count{{outcome="{ended}",tool="{tool}"}} {count}' in told
        or f'_duration_seconds_count{{tool="{tool}",outcome="{ended}"}} {count}' in told
        for tool, ended, count in (
            ("execute", "done", "2.0"),
            ("execute", "failed", "1.0"),
            ("execute", "unreachable", "1.0"),
            ("execute", "crashed", "1.0"),
            ("mcp", "done", "1.0"),
        )
    }
    assert all(counted.values()), told
    lines = [line for line in told.splitlines() if line.startswith("chatd_tool_")]
    cuts = [
        line.rpartition(" ")[2] for line in lines if "truncations" in line and "execute" in line
    ]
    sizes = [line.rpartition(" ")[2] for line in lines if "characters" in line and "mcp" in line]
    assert (cuts, sizes) == (["1.0"], ["2.0"])
    end()
    assert "duration_seconds" not in shown.metrics_text()
