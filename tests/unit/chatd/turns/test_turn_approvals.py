"""Calls of a turn under approval rules: refused, asked about, or run."""

import json
from dataclasses import replace

from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.chats.domain.chat import Status
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import PendingKind
from support.chatd.approvals.in_memory_rules import Rules, judge_of
from support.chatd.turns.turn_stage import SETUP, Stage, calling, tool

RM = ToolCall("a", "execute", '{"command": "rm x"}')
LS = ToolCall("b", "execute", '{"command": "ls"}')


def stage_with(*rules: Rule) -> Stage:
    return Stage(calling(RM, LS), tool("execute"), approvals=judge_of(Rules(list(rules))))


def results(stage: Stage) -> dict[str, ToolResult]:
    return {
        part.tool_call_id: part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    }


async def test_a_denied_call_does_not_run_and_the_model_reads_why() -> None:
    stage = stage_with(Rule("1", INSTALLATION, Effect.DENY, command="rm *", reason="Keep files."))
    await stage.ask()
    assert stage.tools.order == ["execute"]
    told = results(stage)
    assert {call_id: each.outcome for call_id, each in told.items()} == {
        "a": ToolOutcome.FAILED,
        "b": ToolOutcome.DONE,
    }
    assert json.loads(told["a"].result_json)["error"] == (
        "this did not run: a rule of the installation refuses rm x: Keep files."
    )
    assert stage.texts[-1] == ("assistant", "done")
    assert stage.status is Status.WAITING


async def test_a_call_that_needs_approval_waits_undispatched_while_its_sibling_runs() -> None:
    stage = stage_with(Rule("1", INSTALLATION, Effect.ASK, command="rm *"))
    await stage.ask()
    assert stage.tools.order == ["execute"]
    assert stage.status is Status.REQUIRES_ACTION
    (waiting,) = [call for call in stage.state.pending if not call.is_recorded]
    assert (waiting.tool_call_id, waiting.kind, waiting.reason) == (
        "a",
        PendingKind.APPROVAL,
        "a rule of the installation asks before rm x",
    )


async def test_where_nobody_answers_a_call_that_needs_approval_is_refused() -> None:
    rules = Rules([Rule("1", INSTALLATION, Effect.ASK, command="rm *")])
    setup = replace(SETUP, is_attended=False)
    stage = Stage(calling(RM, LS), tool("execute"), approvals=judge_of(rules), setup=setup)
    await stage.ask()
    assert stage.tools.order == ["execute"]
    assert stage.status is Status.WAITING
    assert "asks before rm x" in results(stage)["a"].result_json


async def test_without_rules_every_call_runs() -> None:
    stage = stage_with()
    await stage.ask()
    assert stage.tools.order == ["execute", "execute"]
    assert stage.status is Status.WAITING
