"""Calls of a turn under approval rules: refused, asked about, or run."""

import json
from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced

from chatd.approvals.domain.judgement import arguments_digest
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import AnswerAction, Approved
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor, PendingKind
from chatd.turns.engine.calls import ALTERED
from support.chatd.approvals.in_memory_rules import Rules, judge_of
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import CHAT, SETUP, WORKER, Stage, calling, tool

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


def stored(stage: Stage, tool_call_id: str) -> ToolCall:
    """Return a call as it is in the history."""
    return next(
        part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolCall) and part.tool_call_id == tool_call_id
    )


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


def alter(stage: Stage, call: ToolCall, args_json: str) -> None:
    """Replace the arguments of a call in the stored history."""
    messages = stage.chats.chats[CHAT].messages
    altered = replaced(call, args_json=args_json)
    for place, message in enumerate(messages):
        content = tuple(altered if part == call else part for part in message.content)
        messages[place] = replace(message, content=content)


async def approve(stage: Stage, call: ToolCall) -> None:
    """Allow a call that waits, as it was asked about, and let another process go on with it."""
    (pending,) = [each for each in stage.state.pending if each.is_asked]
    action_id = pending.action_id
    assert action_id is not None
    message_id = next(each.id for each in stage.messages if each.role is Role.ASSISTANT)
    digest = arguments_digest(call)
    dispatch = Dispatch(action_id, call, Executor.TOOLRUNNER, "j1", arguments_digest=digest)
    answer = AnswerAction(action_id, Approved(message_id, dispatch), "{}", "ann", WORKER)
    stage.do(answer)
    await stage.take_over()


async def test_an_approved_call_runs_with_the_arguments_that_were_allowed() -> None:
    stage = stage_with(Rule("1", INSTALLATION, Effect.ASK, command="rm *"))
    await stage.ask()
    await approve(stage, stored(stage, "a"))
    assert stage.tools.order == ["execute", "execute"]
    assert results(stage)["a"].outcome is ToolOutcome.DONE


async def test_an_approved_call_never_runs_with_other_arguments() -> None:
    stage = stage_with(Rule("1", INSTALLATION, Effect.ASK, command="rm *"))
    await stage.ask()
    allowed = stored(stage, "a")
    alter(stage, allowed, '{"command": "rm -r /"}')
    await approve(stage, allowed)
    assert stage.tools.order == ["execute"]
    told = results(stage)["a"]
    assert (told.outcome, json.loads(told.result_json)["error"]) == (ToolOutcome.FAILED, ALTERED)
    assert stage.status is Status.WAITING


async def test_a_dispatched_call_never_starts_with_other_arguments_after_a_takeover() -> None:
    stage = stage_with()
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    alter(stage, stored(stage, "a"), '{"command": "rm -r /"}')
    await stage.take_over()
    assert stage.tools.order == ["execute"]
    told = {call_id: each.outcome for call_id, each in results(stage).items()}
    assert told == {"a": ToolOutcome.FAILED, "b": ToolOutcome.DONE}


async def test_a_call_that_ended_keeps_its_result_though_its_arguments_were_altered() -> None:
    stage = stage_with()
    stage.tools.crash_after_start = True
    with pytest.raises(Crash):
        await stage.ask()
    alter(stage, stored(stage, "a"), '{"command": "rm -r /"}')
    await stage.take_over()
    assert set(stage.tools.starts.values()) == {1}
    assert {each.outcome for each in results(stage).values()} == {ToolOutcome.DONE}
