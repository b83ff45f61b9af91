"""Errors of the domain and the store as problems: the one table of this service."""

import grpc

from chatd.domain.errors import ChatNotFound, InvalidRequest, TransitionNotAllowed
from parley.api.chat.v1.error_reason_pb2 import ErrorReason
from parley.postgres import DatabaseUnavailable
from parley.rpc import ErrorTable, Problem, Violation

DOMAIN = "chat.parley"
RETRY_STORE_AFTER_S = 1.0


def _reason(value: "ErrorReason.ValueType") -> str:
    return ErrorReason.Name(value).removeprefix("ERROR_REASON_")


def _not_found(error: ChatNotFound) -> Problem:
    return Problem(
        grpc.StatusCode.NOT_FOUND,
        _reason(ErrorReason.ERROR_REASON_CHAT_NOT_FOUND),
        "There is no such chat, or you may not see it.",
        {"chat_id": error.chat_id},
    )


def _not_allowed(error: TransitionNotAllowed) -> Problem:
    return Problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        _reason(ErrorReason.ERROR_REASON_TRANSITION_NOT_ALLOWED),
        f"The chat is {error.status}; wait until its turn is over and try again.",
        {"status": error.status, "command": error.command},
    )


def _invalid(error: InvalidRequest) -> Problem:
    return Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        _reason(ErrorReason.ERROR_REASON_INVALID_REQUEST),
        str(error),
        {"field": error.field},
        violations=(Violation(error.field, error.problem),),
    )


def _unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem(
        grpc.StatusCode.UNAVAILABLE,
        _reason(ErrorReason.ERROR_REASON_STORE_UNAVAILABLE),
        "The database cannot be reached; try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


ERRORS: ErrorTable = {
    ChatNotFound: _not_found,
    TransitionNotAllowed: _not_allowed,
    InvalidRequest: _invalid,
    DatabaseUnavailable: _unavailable,
}
