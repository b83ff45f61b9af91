"""Maps errors of chats to gRPC problems."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import (
    AgentAtWork,
    BadToolResult,
    BreakGlassNeeded,
    ChatArchived,
    ChatReadOnly,
    FenceLost,
    InvalidState,
    MessageNotFound,
    NotEditable,
    NothingToCompact,
    QueuedMessageNotFound,
    QueueFull,
    ResultProblem,
    TitleUnavailable,
    TransitionNotAllowed,
)
from parley.rpc import ErrorTable, Problem, Violation

VIOLATIONS_MAX = 100
#: Problem text for each kind of invalid tool result.
RESULT_PROBLEMS: Mapping[ResultProblem, str] = {
    ResultProblem.DUPLICATE: "names a call that has more than one result; send one",
    ResultProblem.INVALID_JSON: "names a call whose result is not JSON",
    ResultProblem.MISSING: "has no result of the call {call_id}, which waits for one",
    ResultProblem.UNEXPECTED: "names no call that waits for a result of the client",
}
#: What the caller can do next, by the status that rejected the command.
NEXT_STEPS: Mapping[Status, str] = {
    Status.WAITING: "Nothing runs in it; send a message first.",
    Status.RUNNING: "Wait until its turn ends, or interrupt it, then try again.",
    Status.INTERRUPTING: "Wait until its turn has ended, then try again.",
    Status.REQUIRES_ACTION: "Send the results of its tools, or interrupt it, then try again.",
    Status.ERROR: "Its last turn failed; send a message to go on.",
}


def _chat_read_only(error: ChatReadOnly) -> Problem:
    return Problem.of(
        "CHAT_READ_ONLY",
        "You can read this chat, and only its owner can change it or answer what it asks. "
        "Start a chat of your own to write.",
        {"chat_id": error.chat_id},
    )


def _break_glass_needed(error: BreakGlassNeeded) -> Problem:
    return Problem.of("BREAK_GLASS_NEEDED", f"{error}.", {"user_id": error.user_id})


def _message_not_found(error: MessageNotFound) -> Problem:
    told = "There is no such message in the chat; read its messages anew."
    return Problem.of(
        "MESSAGE_NOT_FOUND",
        told if error.message_id else "The chat has no messages.",
        {"message_id": str(error.message_id)},
    )


def _queued_not_found(error: QueuedMessageNotFound) -> Problem:
    return Problem.of(
        "QUEUED_MESSAGE_NOT_FOUND",
        "No such message waits; it may have been sent or dropped meanwhile.",
        {"queued_message_id": error.queued_message_id},
    )


def _not_allowed(error: TransitionNotAllowed) -> Problem:
    return Problem.of(
        "TRANSITION_NOT_ALLOWED",
        f"The chat is {error.status.replace('_', ' ')}, in which this is not possible. "
        f"{NEXT_STEPS[error.status]}",
        {"status": error.status, "command": error.command},
    )


def _agent_at_work(error: AgentAtWork) -> Problem:
    return Problem.of(
        "TRANSITION_NOT_ALLOWED",
        "An agent of the chat works in its workspace. "
        "Wait until its turn ends, or interrupt it, then try again.",
        {"status": error.status, "chat_id": error.chat_id},
    )


def _archived(error: ChatArchived) -> Problem:
    return Problem.of(
        "CHAT_ARCHIVED",
        "The chat is archived; unarchive it first.",
        {"chat_id": error.chat_id},
    )


def _invalid_state(error: InvalidState) -> Problem:
    return Problem.of(
        "INVALID_STATE",
        f"The chat's stored state is impossible: {error.problem}. Reconcile the chat.",
        {"chat_id": error.chat_id},
    )


def _moved_on(error: FenceLost) -> Problem:
    return Problem.of(
        "VERSION_CONFLICT",
        "The chat moved on meanwhile; read it and try again.",
        {"chat_id": error.chat_id},
    )


def _queue_full(error: QueueFull) -> Problem:
    return Problem.of(
        "QUEUE_FULL",
        f"{error.queue_length_max} messages wait already; wait for a turn to end or drop one.",
        {"queue_length_max": str(error.queue_length_max)},
    )


def _not_editable(error: NotEditable) -> Problem:
    return Problem.of(
        "NOT_EDITABLE",
        "Only messages of a user can be edited or reverted to.",
        {"role": error.role, "message_id": str(error.message_id)},
    )


def _title_unavailable(error: TitleUnavailable) -> Problem:
    return Problem.of(
        "TITLE_UNAVAILABLE",
        "No model could write a title; try again, or write one.",
        {"chat_id": error.chat_id},
    )


def _nothing_to_compact(error: NothingToCompact) -> Problem:
    return Problem.of(
        "NOTHING_TO_COMPACT",
        "Nothing was said since the last summary.",
        {"chat_id": error.chat_id},
    )


def _bad_tool_result(error: BadToolResult) -> Problem:
    return Problem.of(
        "BAD_TOOL_RESULT",
        f"The result of the call {error.tool_call_id} is {error.problem}; send exactly one JSON "
        "result for each call that waits.",
        {"tool_call_id": error.tool_call_id, "problem": error.problem},
        violations=tuple(
            Violation(
                error.fields.get(call_id, "results"),
                RESULT_PROBLEMS[problem].format(call_id=call_id),
            )
            for call_id, problem in islice(error.problems.items(), VIOLATIONS_MAX)
        ),
    )


CHAT_ERRORS: Final[ErrorTable] = {
    ChatReadOnly: _chat_read_only,
    BreakGlassNeeded: _break_glass_needed,
    MessageNotFound: _message_not_found,
    QueuedMessageNotFound: _queued_not_found,
    TransitionNotAllowed: _not_allowed,
    AgentAtWork: _agent_at_work,
    ChatArchived: _archived,
    InvalidState: _invalid_state,
    FenceLost: _moved_on,
    QueueFull: _queue_full,
    NotEditable: _not_editable,
    TitleUnavailable: _title_unavailable,
    NothingToCompact: _nothing_to_compact,
    BadToolResult: _bad_tool_result,
}
