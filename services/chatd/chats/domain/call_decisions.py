"""Decisions about the calls of a step: dispatched, recorded, suspended, committed."""

from dataclasses import replace

from chatd.chats.domain.chat import ChatState, NewMessage, PendingCall
from chatd.chats.domain.commands import Command, CommitStep, SuspendCall
from chatd.chats.domain.errors import FenceLost, TransitionNotAllowed
from chatd.chats.domain.state_changes import Decision, grown, next_episode
from chatd.chats.domain.writes import (
    ActionOutcome,
    AnswerPending,
    AppendMessages,
    EndActions,
    OpenActions,
    RecordDispatches,
    StoredAnswer,
    StoreResult,
    Write,
)
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolResult
from chatd.content.domain.tools import PendingKind

INTERRUPTED = "The call was interrupted before it produced a result."


def require_nothing_open(moved: ChatState, command: Command) -> None:
    """Refuse to append after calls without a result: no provider would accept that history."""
    if moved.pending:
        raise TransitionNotAllowed(moved.status, type(command).__name__)


def commit_step(moved: ChatState, command: CommitStep) -> Decision:
    """Add an answer with its open calls to the history."""
    require_nothing_open(moved, command)
    local = tuple(
        PendingCall(
            each.call.tool_call_id, each.call.tool_name, each.execution_id, each.call.mcp_server_id
        )
        for each in command.dispatches
    )
    asked = tuple(each.pending for each in command.asked)
    stepped = replace(grown(moved, len(command.messages)), pending=(*local, *asked))
    writes: tuple[Write, ...] = (AppendMessages(command.messages),)
    # The calls are in the first message; results of refused ones may follow it.
    if command.dispatches:
        writes = (*writes, RecordDispatches(moved.next_message_id, command.dispatches))
    if command.asked:
        writes = (*writes, OpenActions(moved.next_message_id, command.asked))
    return Decision(next_episode(stepped), writes)


def record_result(moved: ChatState, result: ToolResult) -> Decision:
    """Mark a call as recorded; the episode stays open for the other calls."""
    called = result.tool_call_id
    call = next((each for each in moved.pending if each.tool_call_id == called), None)
    if call is None or call.is_recorded:
        raise FenceLost(moved.chat_id)
    recorded = replace(call, is_recorded=True)
    writes: tuple[Write, ...] = (StoreResult(call, result),)
    if call.is_suspended and call.question_id is not None:
        # It ended at its executor while the chat was interrupted: nobody can answer it any more.
        recorded = replace(recorded, kind=PendingKind.DISPATCHED, question=None, question_id=None)
        ended = (StoredAnswer(call.question_id, "null"),)
        writes = (*writes, EndActions(ended, ActionOutcome.CANCELLED))
    pending = tuple(recorded if each is call else each for each in moved.pending)
    return Decision(replace(moved, pending=pending, takeovers=0), writes)


def suspend_call(moved: ChatState, command: SuspendCall) -> Decision:
    """Let a dispatched call ask; the episode stays open for the other calls."""
    asked = command.asked.pending
    call = next((each for each in moved.pending if each.execution_id == asked.execution_id), None)
    if call is None or not call.is_dispatched or call.is_recorded:
        raise FenceLost(moved.chat_id)
    pending = tuple(asked if each is call else each for each in moved.pending)
    opened = OpenActions(command.message_id, (command.asked,))
    return Decision(replace(moved, pending=pending, takeovers=0), (opened,))


def has_suspended(moved: ChatState) -> bool:
    """Return whether a call of the chat waits at its executor for an answer."""
    return any(call.is_suspended for call in moved.pending)


def commit_results(moved: ChatState, results: tuple[ToolResult, ...]) -> Decision:
    """Add results to the history; the calls of the client stay open."""
    given = {result.tool_call_id: result for result in results}
    done = tuple(call for call in moved.pending if call.is_recorded or call.tool_call_id in given)
    stepped = replace(
        grown(moved, len(done)), pending=tuple(call for call in moved.pending if call not in done)
    )
    if not given:
        return Decision(next_episode(stepped), (AnswerPending(done, INTERRUPTED),))
    new = tuple(call for call in done if not call.is_recorded)
    if given.keys() != {call.tool_call_id for call in done} or len(new) > 1:
        raise FenceLost(moved.chat_id)
    messages = tuple(NewMessage(Role.TOOL, (given[call.tool_call_id],)) for call in done)
    stored = tuple(StoreResult(call, given[call.tool_call_id]) for call in new)
    return Decision(next_episode(stepped), (AppendMessages(messages), *stored))
