"""Answers to what a chat waits for: stored one by one; the last one resumes the turn."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from chatd.chats.domain.chat import ChatState, NewMessage, PendingCall
from chatd.chats.domain.commands import AnswerAction, Approved, Resolved, Supplied
from chatd.chats.domain.errors import ActionNotOpen
from chatd.chats.domain.state_changes import Decision, grown, running
from chatd.chats.domain.tool_results import synthetic_result
from chatd.chats.domain.writes import (
    ActionOutcome,
    AnswerPending,
    AppendMessages,
    EndActions,
    RecordDispatches,
    RememberCall,
    SetMode,
    StoredAnswer,
    Write,
)
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import HookContext, Notice, Part, Text, ToolOutcome, ToolResult
from chatd.content.domain.prompts import hook_context_text
from chatd.content.domain.tools import InputAction, InputAnswer, PendingKind
from chatd.primitives.domain.ids import ExecutionId, WorkerId

TIMED_OUT: Mapping[PendingKind, str] = {
    PendingKind.CLIENT: "The client did not answer in time.",
    PendingKind.QUESTION: "Nobody answered the question in time. Go on without the answer.",
    PendingKind.PLAN: "Nobody looked at the plan in time. It is not accepted.",
    PendingKind.APPROVAL: "This did not run: nobody allowed it in time.",
    PendingKind.LOOP: "This did not run: nobody allowed another repetition in time.",
}
NO_ANSWER = "No answer was stored."
#: Actions that a plain message answers.
FREE_TEXT = frozenset({PendingKind.QUESTION, PendingKind.PLAN})


def open_action(state: ChatState, action_id: ExecutionId) -> PendingCall:
    """Return the open action with this id.

    Raises:
        ActionNotOpen: There is none.
    """
    for call in state.pending:
        if call.is_asked and call.action_id == action_id:
            return call
    raise ActionNotOpen(action_id)


def earliest_s(pending: tuple[PendingCall, ...]) -> float | None:
    """Return the shortest deadline of the open actions; None if they may wait for ever."""
    known = [call.deadline_s for call in pending if call.is_asked and call.deadline_s is not None]
    return min(known, default=None)


def next_to_expire(state: ChatState) -> ExecutionId | None:
    """Return the open action whose deadline comes first."""
    earliest = earliest_s(state.pending)
    due = (call for call in state.pending if call.is_asked and call.deadline_s == earliest)
    return next((call.action_id for call in due), None)


def free_text_answer(state: ChatState, content: tuple[Part, ...]) -> PendingCall | None:
    """Return the action that a plain message answers; None if it answers none."""
    if not all(isinstance(part, Text | HookContext | Notice) for part in content):
        return None
    return next((call for call in state.pending if call.is_asked and call.kind in FREE_TEXT), None)


def answered_by_message(
    moved: ChatState, call: PendingCall, message: NewMessage, claimed_by: WorkerId | None
) -> Decision:
    """Take a plain message as the answer of a question, or as a remark that refuses a plan."""
    text = "\n".join(part.text for part in message.content if isinstance(part, Text))
    is_plan = call.kind is PendingKind.PLAN
    said = {"accepted": False, "remark": text} if is_plan else {"text": text}
    contexts = [
        hook_context_text(part) for part in message.content if isinstance(part, HookContext)
    ]
    notices = [part.text for part in message.content if isinstance(part, Notice)]
    added = {
        name: texts
        for name, texts in (("hook_context", contexts), ("hook_notice", notices))
        if texts
    }
    result = ToolResult(
        call.tool_call_id,
        call.tool_name,
        json.dumps({"ok": True, **said, **added}, ensure_ascii=False),
        ToolOutcome.DONE,
        call.mcp_server_id,
    )
    ended = EndActions(
        (StoredAnswer(_id_of(call), json.dumps(said, ensure_ascii=False), result),),
        ActionOutcome.ANSWERED,
        message.created_by,
    )
    return with_results(moved, (result,), ended, claimed_by)


def answer_action(moved: ChatState, command: AnswerAction) -> Decision:
    """Store one answer.

    Raises:
        ActionNotOpen: It was answered already, or has ended, or never existed.
    """
    call = open_action(moved, command.action_id)
    if call.is_suspended != isinstance(command.answer, Supplied):
        raise ActionNotOpen(command.action_id)
    match command.answer:
        case Resolved(result, mode):
            stored = StoredAnswer(command.action_id, command.answer_json, result)
            ended = EndActions((stored,), ActionOutcome.ANSWERED, command.created_by)
            decision = with_results(moved, (result,), ended, command.claimed_by)
            modes: tuple[Write, ...] = () if mode is None else (SetMode(mode),)
            return replace(decision, writes=(*decision.writes, *modes))
        case Approved(message_id, dispatch, remembered):
            dispatched = PendingCall(
                call.tool_call_id, call.tool_name, dispatch.execution_id, call.mcp_server_id
            )
            pending = tuple(dispatched if each is call else each for each in moved.pending)
            stored = StoredAnswer(command.action_id, command.answer_json)
            writes: tuple[Write, ...] = (
                EndActions((stored,), ActionOutcome.ANSWERED, command.created_by),
                RecordDispatches(message_id, (dispatch,)),
            )
            if remembered is not None:
                writes = (*writes, RememberCall(remembered))
            return _resumed_or_waiting(moved, pending, writes, command.claimed_by)
        case Supplied():
            stored = StoredAnswer(command.action_id, command.answer_json)
            ended = EndActions((stored,), ActionOutcome.ANSWERED, command.created_by)
            return _supplied(moved, call, command.answer, ended, command.claimed_by)


def _supplied(
    moved: ChatState,
    call: PendingCall,
    supplied: Supplied,
    ended: EndActions,
    claimed_by: WorkerId | None,
) -> Decision:
    """Store the answer with the call that waits for it; its next owner passes it on."""
    assert call.question is not None  # It is suspended.
    answer = InputAnswer(call.question.request_id, supplied.action, supplied.content_json)
    going_on = PendingCall(
        call.tool_call_id, call.tool_name, call.execution_id, call.mcp_server_id, answer=answer
    )
    pending = tuple(going_on if each is call else each for each in moved.pending)
    return _resumed_or_waiting(moved, pending, (ended,), claimed_by)


def expire_action(
    moved: ChatState, action_id: ExecutionId | None, claimed_by: WorkerId | None
) -> Decision:
    """End an action whose deadline passed without an answer."""
    call = next(each for each in moved.pending if each.is_asked and each.action_id == action_id)
    if call.is_suspended:
        ended = EndActions((StoredAnswer(_id_of(call), "null"),), ActionOutcome.EXPIRED)
        return _supplied(moved, call, Supplied(InputAction.CANCEL), ended, claimed_by)
    result = synthetic_result(call, TIMED_OUT[call.kind])
    stored = () if action_id is None else (StoredAnswer(action_id, "null", result),)
    return with_results(moved, (result,), EndActions(stored, ActionOutcome.EXPIRED), claimed_by)


def with_results(
    moved: ChatState,
    results: tuple[ToolResult, ...],
    ended: EndActions,
    claimed_by: WorkerId | None,
) -> Decision:
    """Store results of asked calls; resume if they were the last ones."""
    given = {result.tool_call_id for result in results}
    pending = tuple(
        replace(call, is_recorded=True) if call.is_asked and call.tool_call_id in given else call
        for call in moved.pending
    )
    ends: tuple[Write, ...] = (ended,) if ended.answers else ()
    if any(call.is_asked or not call.is_recorded for call in pending):
        return _resumed_or_waiting(moved, pending, ends, claimed_by)
    resumed = running(replace(grown(moved, len(pending)), pending=()), claimed_by)
    by_id = {result.tool_call_id: result for result in results}
    if by_id.keys() == {call.tool_call_id for call in pending}:
        ordered = (by_id[call.tool_call_id] for call in pending)
        messages = tuple(NewMessage(Role.TOOL, (each,), ended.ended_by) for each in ordered)
        return Decision(resumed, (AppendMessages(messages), *ends))
    answers = AnswerPending(pending, NO_ANSWER, results, ended.ended_by)
    return Decision(resumed, (answers, *ends))


def _resumed_or_waiting(
    moved: ChatState,
    pending: tuple[PendingCall, ...],
    writes: tuple[Write, ...],
    claimed_by: WorkerId | None,
) -> Decision:
    """Go on waiting for the other actions, or run the calls that were allowed.

    New history without a message: readers receive the actions that are left.
    """
    changed = grown(replace(moved, pending=pending), 0)
    if any(call.is_asked for call in pending):
        return Decision(replace(changed, deadline_at=_deadline_of(moved, pending)), writes)
    return Decision(running(changed, claimed_by), writes)


def expires_at(state: ChatState, call: PendingCall) -> datetime | None:
    """Return when an open action expires; None if it does not."""
    earliest = earliest_s(state.pending)
    if state.deadline_at is None or earliest is None or call.deadline_s is None:
        return None
    return state.deadline_at + timedelta(seconds=call.deadline_s - earliest)


def _deadline_of(before: ChatState, pending: tuple[PendingCall, ...]) -> datetime | None:
    """Return the earliest deadline of the actions that are left, by the same clock."""
    earliest, left = earliest_s(before.pending), earliest_s(pending)
    if before.deadline_at is None or earliest is None or left is None:
        return None
    return before.deadline_at + timedelta(seconds=left - earliest)


def _id_of(call: PendingCall) -> ExecutionId:
    assert call.action_id is not None  # Only calls of older clients have none.
    return call.action_id
