"""Calls that ask people while they run: answered, refused, given up, lost."""

import json
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    BusyBehavior,
    EditMessage,
    ExpireAction,
    SetArchived,
    Supplied,
)
from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import InputAction, InputAnswer, InputRequired, PendingKind
from chatd.primitives.domain.ids import MessageId
from chatd.turns.engine.calls import CallLimits
from chatd.turns.engine.dependencies import TurnLimits
from support.chatd.turns.turn_stage import CHAT, SETUP, WORKER, Stage, calling, tool

CALLS = (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))
FORM = json.dumps({"properties": {"name": {"type": "string"}}})
WHICH = InputRequired("r1", PendingKind.ELICITATION, "Which?", FORM, expires_s=60.0)
LOGIN = InputRequired("r2", PendingKind.LOGIN, "Sign in.", url="https://example.com/login")


async def asking(*questions: InputRequired) -> Stage:
    """Return a chat that waits for what its first call asks; its second one is done."""
    stage = Stage(calling(*CALLS), tool("one"), tool("two"))
    stage.tools.questions["one"] = questions or (WHICH,)
    await stage.ask()
    assert stage.status is Status.REQUIRES_ACTION
    return stage


def suspended(stage: Stage) -> PendingCall:
    (call,) = [each for each in stage.state.pending if each.is_suspended]
    return call


async def supply(stage: Stage, action: InputAction, content_json: str = "") -> None:
    action_id = suspended(stage).action_id
    assert action_id is not None
    supplied = Supplied(action, content_json)
    stage.do(AnswerAction(action_id, supplied, '{"accepted": true}', "ann", WORKER))
    await stage.run()


def results(stage: Stage) -> dict[str, ToolResult]:
    return {
        part.tool_call_id: part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    }


def outcomes(stage: Stage) -> list[ActionOutcome | None]:
    return [each.outcome for each in stage.chats.chats[CHAT].actions.values()]


async def test_a_call_that_asks_waits_without_an_owner_and_its_sibling_is_done() -> None:
    stage = await asking()
    call = suspended(stage)
    assert (call.kind, call.question, call.deadline_s) == (PendingKind.ELICITATION, WHICH, 60.0)
    assert call.question_id != call.execution_id
    assert (stage.state.worker_id, stage.state.pending) == (None, (call,))
    assert list(results(stage)) == ["b"]
    (action,) = stage.chats.chats[CHAT].actions.values()
    assert json.loads(action.asked.call.args_json) == {
        "message": "Which?",
        "schema": json.loads(FORM),
    }


async def test_the_same_execution_goes_on_with_each_answer() -> None:
    stage = await asking(WHICH, LOGIN)
    first = suspended(stage)
    await supply(stage, InputAction.ACCEPT, '{"name": "x"}')
    second = suspended(stage)
    assert (second.execution_id, second.question) == (first.execution_id, LOGIN)
    await supply(stage, InputAction.DECLINE)
    assert stage.status is Status.WAITING
    assert stage.tools.told == [
        InputAnswer("r1", InputAction.ACCEPT, '{"name": "x"}'),
        InputAnswer("r2", InputAction.DECLINE),
    ]
    assert results(stage)["a"].outcome is ToolOutcome.DONE
    assert set(stage.tools.starts.values()) == {1}
    assert outcomes(stage) == [ActionOutcome.ANSWERED, ActionOutcome.ANSWERED]


async def test_an_answer_to_a_call_whose_session_died_ends_it_as_unknown() -> None:
    stage = await asking()
    stage.tools.lose_sessions()
    await supply(stage, InputAction.ACCEPT)
    assert results(stage)["a"].outcome is ToolOutcome.UNKNOWN
    assert (set(stage.tools.starts.values()), stage.tools.told) == ({1}, [])


@pytest.mark.parametrize("is_same_generation", [False, True])
async def test_a_call_that_its_journal_lost_is_not_made_again(is_same_generation: bool) -> None:
    stage = await asking()
    stage.tools.forget_journal()
    if is_same_generation:
        stage.tools.restore_generation("j1")
    await supply(stage, InputAction.ACCEPT)
    assert results(stage)["a"].outcome is ToolOutcome.UNKNOWN
    assert set(stage.tools.starts.values()) == {1}


async def test_what_nobody_answers_in_time_is_told_to_the_call() -> None:
    stage = await asking()
    stage.do(ExpireAction(suspended(stage).action_id, WORKER))
    await stage.run()
    assert stage.tools.told == [InputAnswer("r1", InputAction.CANCEL)]
    assert outcomes(stage) == [ActionOutcome.EXPIRED]
    assert stage.status is Status.WAITING


async def test_an_interrupt_lets_an_owner_cancel_the_call_first() -> None:
    stage = await asking()
    stage.interrupt()
    assert (stage.status, stage.state.worker_id) == (Status.INTERRUPTING, WORKER)
    await stage.run()
    assert stage.tools.stopped == ["one"]
    assert results(stage)["a"].outcome is ToolOutcome.CANCELLED
    assert (stage.status, outcomes(stage)) == (Status.WAITING, [ActionOutcome.CANCELLED])


async def test_a_call_that_ended_meanwhile_has_its_result_after_an_interrupt() -> None:
    stage = await asking()
    stage.tools.lose_sessions()
    stage.interrupt()
    await stage.run()
    assert stage.tools.stopped == []
    assert results(stage)["a"].outcome is ToolOutcome.UNKNOWN
    assert (stage.status, outcomes(stage)) == (Status.WAITING, [ActionOutcome.CANCELLED])


async def test_an_urgent_message_runs_after_the_call_was_cancelled() -> None:
    stage = await asking()
    stage.send("never mind", BusyBehavior.INTERRUPT)
    stopping = stage.status
    stage.tools.questions.clear()
    await stage.run()
    assert stage.tools.stopped == ["one"]
    assert ("user", "never mind") in stage.texts
    assert (stopping, stage.status) == (Status.INTERRUPTING, Status.WAITING)


async def test_an_edit_and_the_archive_have_the_call_cancelled_later() -> None:
    edited, archived = await asking(), await asking()
    message = replace_text(edited)
    edited.do(EditMessage(MessageId(1), message, WORKER))
    archived.do(SetArchived(archived=True))
    for stage in (edited, archived):
        chat = stage.chats.chats[CHAT]
        assert chat.cancelled == {
            each.execution_id for each in chat.dispatches.values() if each.call.tool_name == "one"
        }
        assert outcomes(stage) == [ActionOutcome.CANCELLED]
    assert (edited.status, archived.status) == (Status.RUNNING, Status.WAITING)


def replace_text(stage: Stage) -> NewMessage:
    first = stage.messages[0]
    return NewMessage(first.role, (Text("something else"),), first.created_by)


async def test_where_nobody_answers_the_call_is_told_so_at_once() -> None:
    setup = replace(SETUP, is_attended=False)
    stage = Stage(calling(*CALLS), tool("one"), tool("two"), setup=setup)
    stage.tools.questions["one"] = (WHICH, LOGIN)
    await stage.ask()
    assert [answer.action for answer in stage.tools.told] == [InputAction.CANCEL] * 2
    assert results(stage)["a"].outcome is ToolOutcome.DONE
    assert stage.status is Status.WAITING


@pytest.mark.parametrize(
    "question",
    [
        replace(WHICH, message=" "),
        replace(WHICH, message="x" * 5000),
        replace(WHICH, schema_json="[]"),
        replace(WHICH, schema_json="{"),
        replace(WHICH, kind=PendingKind.DISPATCHED),
        replace(LOGIN, url=""),
        replace(LOGIN, url="javascript:alert(1)"),
    ],
)
async def test_a_question_that_cannot_be_shown_is_not_asked(question: InputRequired) -> None:
    stage = Stage(calling(*CALLS), tool("one"), tool("two"))
    stage.tools.questions["one"] = (question,)
    await stage.ask()
    assert stage.tools.told == [InputAnswer(question.request_id, InputAction.CANCEL)]
    assert stage.status is Status.WAITING


async def test_a_call_that_asks_for_ever_is_cancelled() -> None:
    setup, limits = replace(SETUP, is_attended=False), TurnLimits(calls=CallLimits())
    stage = Stage(calling(*CALLS), tool("one"), tool("two"), setup=setup, limits=limits)
    stage.tools.questions["one"] = tuple(replace(WHICH, request_id=f"r{n}") for n in range(99))
    await stage.ask()
    assert len(stage.tools.told) == CallLimits().unanswered_max
    assert stage.tools.stopped == ["one"]
    assert results(stage)["a"].outcome is ToolOutcome.FAILED
