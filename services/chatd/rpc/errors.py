"""Errors of the domain and the store as problems: the one table of this service."""

from collections.abc import Mapping

import grpc

from chatd.domain.errors import (
    BadToolResult,
    ChatArchived,
    ChatNotFound,
    FenceLost,
    FileNotFound,
    InvalidRequest,
    InvalidState,
    MessageNotFound,
    NotEditable,
    NothingToCompact,
    QueuedMessageNotFound,
    QueueFull,
    RequestIdReused,
    TooManyFiles,
    TransitionNotAllowed,
)
from parley.api.chat.v1.error_reason_pb2 import ErrorReason
from parley.postgres import DatabaseBusy, DatabaseUnavailable
from parley.rpc import ErrorTable, Problem, Violation

DOMAIN = "chat.parley"
RETRY_STORE_AFTER_S = 1.0


def _problem(
    status: grpc.StatusCode,
    reason: "ErrorReason.ValueType",
    message: str,
    metadata: Mapping[str, str],
) -> Problem:
    name = ErrorReason.Name(reason).removeprefix("ERROR_REASON_")
    return Problem(status, name, message, metadata)


def _chat_not_found(error: ChatNotFound) -> Problem:
    return _problem(
        grpc.StatusCode.NOT_FOUND,
        ErrorReason.ERROR_REASON_CHAT_NOT_FOUND,
        "There is no such chat, or you may not see it.",
        {"chat_id": error.chat_id},
    )


def _message_not_found(error: MessageNotFound) -> Problem:
    return _problem(
        grpc.StatusCode.NOT_FOUND,
        ErrorReason.ERROR_REASON_MESSAGE_NOT_FOUND,
        "There is no such message in the chat; read its messages anew.",
        {"message_id": str(error.message_id)},
    )


def _queued_not_found(error: QueuedMessageNotFound) -> Problem:
    return _problem(
        grpc.StatusCode.NOT_FOUND,
        ErrorReason.ERROR_REASON_QUEUED_MESSAGE_NOT_FOUND,
        "No such message waits; it may have been sent or dropped meanwhile.",
        {"queued_message_id": error.queued_message_id},
    )


def _file_not_found(error: FileNotFound) -> Problem:
    return _problem(
        grpc.StatusCode.NOT_FOUND,
        ErrorReason.ERROR_REASON_FILE_NOT_FOUND,
        "There is no such file, or you may not see it; upload it first.",
        {"file_id": error.file_id},
    )


def _too_many_files(error: TooManyFiles) -> Problem:
    return _problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        ErrorReason.ERROR_REASON_TOO_MANY_FILES,
        f"A chat holds at most {error.files_max} files; start another chat.",
        {"files_max": str(error.files_max)},
    )


def _not_allowed(error: TransitionNotAllowed) -> Problem:
    return _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_TRANSITION_NOT_ALLOWED,
        f"The chat is {error.status}; this is not possible now. Wait or interrupt it, "
        "then try again.",
        {"status": error.status, "command": error.command},
    )


def _archived(error: ChatArchived) -> Problem:
    return _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_CHAT_ARCHIVED,
        "The chat is archived; take it back first.",
        {"chat_id": error.chat_id},
    )


def _invalid_state(error: InvalidState) -> Problem:
    return _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_INVALID_STATE,
        f"The chat's stored state is impossible: {error.problem}. Reconcile the chat.",
        {"chat_id": error.chat_id},
    )


def _moved_on(error: FenceLost) -> Problem:
    return _problem(
        grpc.StatusCode.ABORTED,
        ErrorReason.ERROR_REASON_VERSION_CONFLICT,
        "The chat moved on meanwhile; read it and try again.",
        {"chat_id": error.chat_id},
    )


def _queue_full(error: QueueFull) -> Problem:
    return _problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        ErrorReason.ERROR_REASON_QUEUE_FULL,
        f"{error.queue_length_max} messages wait already; wait for a turn to end or drop one.",
        {"queue_length_max": str(error.queue_length_max)},
    )


def _not_editable(error: NotEditable) -> Problem:
    return _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_NOT_EDITABLE,
        "Only messages of a user can be edited.",
        {"role": error.role, "message_id": str(error.message_id)},
    )


def _nothing_to_compact(error: NothingToCompact) -> Problem:
    return _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_NOTHING_TO_COMPACT,
        "Nothing was said since the last summary.",
        {"chat_id": error.chat_id},
    )


def _bad_tool_result(error: BadToolResult) -> Problem:
    return _problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        ErrorReason.ERROR_REASON_BAD_TOOL_RESULT,
        f"The result of the call {error.tool_call_id} is {error.problem}; send exactly one JSON "
        "result for each call that waits.",
        {"tool_call_id": error.tool_call_id, "problem": error.problem},
    )


def _request_id_reused(error: RequestIdReused) -> Problem:
    return _problem(
        grpc.StatusCode.ALREADY_EXISTS,
        ErrorReason.ERROR_REASON_REQUEST_ID_REUSED,
        "The request id was used before with another body; choose a new one.",
        {"request_id": error.request_id},
    )


def _invalid(error: InvalidRequest) -> Problem:
    return Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        ErrorReason.Name(ErrorReason.ERROR_REASON_INVALID_REQUEST).removeprefix("ERROR_REASON_"),
        str(error),
        {"field": error.field},
        violations=(Violation(error.field, error.problem),),
    )


def _unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem(
        grpc.StatusCode.UNAVAILABLE,
        ErrorReason.Name(ErrorReason.ERROR_REASON_STORE_UNAVAILABLE).removeprefix("ERROR_REASON_"),
        "The database cannot be reached; try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


def _contended(_: DatabaseBusy) -> Problem:
    # Not UNAVAILABLE: at another process it would wait for the same lock.
    return Problem(
        grpc.StatusCode.ABORTED,
        ErrorReason.Name(ErrorReason.ERROR_REASON_VERSION_CONFLICT).removeprefix("ERROR_REASON_"),
        "The chat is being changed by others; try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


ERRORS: ErrorTable = {
    ChatNotFound: _chat_not_found,
    MessageNotFound: _message_not_found,
    QueuedMessageNotFound: _queued_not_found,
    FileNotFound: _file_not_found,
    TooManyFiles: _too_many_files,
    TransitionNotAllowed: _not_allowed,
    ChatArchived: _archived,
    InvalidState: _invalid_state,
    FenceLost: _moved_on,
    QueueFull: _queue_full,
    NotEditable: _not_editable,
    NothingToCompact: _nothing_to_compact,
    BadToolResult: _bad_tool_result,
    RequestIdReused: _request_id_reused,
    InvalidRequest: _invalid,
    DatabaseUnavailable: _unavailable,
    DatabaseBusy: _contended,
}
