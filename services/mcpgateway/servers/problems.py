"""The error table of mcpgateway: maps errors to gRPC problems."""

from collections.abc import Callable
from typing import Final

import grpc

from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import (
    BadArguments,
    CallAcknowledged,
    CatalogueChanged,
    ExecutionIdReused,
    InvalidRequest,
    JournalChanged,
    McpError,
    NeedsConnect,
    PlanModeDenied,
    RequestIdReused,
    ServerDisabled,
    ServerNotFound,
    SlugTaken,
    StaleOwner,
    ToolChanged,
    ToolDenied,
    ToolNotFound,
    TooManyCalls,
    UpstreamFailed,
)
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason
from parley.postgres import DatabaseUnavailable
from parley.rpc import ErrorTable, Problem, Violation

DOMAIN: Final = "mcp.parley"
RETRY_AFTER_S: Final = 1.0

_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
_STATUSES = {
    Reason.MISCONFIGURED: _PRECONDITION,
    Reason.ADDRESS_BLOCKED: _PRECONDITION,
    Reason.CONNECT_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
}


def _table(
    status: grpc.StatusCode, reason: "ErrorReason.ValueType", *attributes: str
) -> Callable[[McpError], Problem]:
    """Return a function that converts an error to a problem, with attributes as metadata."""
    name = ErrorReason.Name(reason).removeprefix("ERROR_REASON_")

    def tell(error: McpError) -> Problem:
        metadata = {attribute: str(getattr(error, attribute)) for attribute in attributes}
        return Problem(status, name, str(error), metadata)

    return tell


def _invalid(error: InvalidRequest) -> Problem:
    violations = tuple(Violation(field, text) for field, text in error.problems.items())
    status = grpc.StatusCode.INVALID_ARGUMENT
    return Problem(status, "INVALID_REQUEST", str(error), violations=violations)


def _journal_changed(error: JournalChanged) -> Problem:
    metadata = {"journal_generation": error.generation}
    return Problem(_PRECONDITION, "JOURNAL_CHANGED", str(error), metadata)


def _too_many(error: TooManyCalls) -> Problem:
    return Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_CALLS",
        str(error),
        {"calls_max": str(error.calls_max)},
        retry_after_s=RETRY_AFTER_S,
    )


def _upstream(error: UpstreamFailed) -> Problem:
    return Problem(
        _STATUSES.get(error.reason, grpc.StatusCode.UNAVAILABLE),
        error.reason,
        str(error),
        retry_after_s=error.retry_after_ms / 1000 if error.retry_after_ms else None,
    )


def _store_unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem(
        grpc.StatusCode.UNAVAILABLE,
        "STORE_UNAVAILABLE",
        "the database cannot be reached; try again",
        retry_after_s=RETRY_AFTER_S,
    )


ERRORS: ErrorTable = {
    InvalidRequest: _invalid,
    RequestIdReused: _table(
        grpc.StatusCode.ALREADY_EXISTS, ErrorReason.ERROR_REASON_REQUEST_ID_REUSED, "request_id"
    ),
    ServerNotFound: _table(
        grpc.StatusCode.NOT_FOUND, ErrorReason.ERROR_REASON_SERVER_NOT_FOUND, "server_id"
    ),
    ServerDisabled: _table(_PRECONDITION, ErrorReason.ERROR_REASON_SERVER_DISABLED, "server_id"),
    SlugTaken: _table(grpc.StatusCode.ALREADY_EXISTS, ErrorReason.ERROR_REASON_SLUG_TAKEN, "slug"),
    NeedsConnect: _table(_PRECONDITION, ErrorReason.ERROR_REASON_NEEDS_CONNECT, "server_id"),
    ToolNotFound: _table(
        grpc.StatusCode.NOT_FOUND, ErrorReason.ERROR_REASON_TOOL_NOT_FOUND, "server_id", "tool"
    ),
    ToolDenied: _table(
        grpc.StatusCode.PERMISSION_DENIED, ErrorReason.ERROR_REASON_TOOL_DENIED, "server_id", "tool"
    ),
    PlanModeDenied: _table(
        grpc.StatusCode.PERMISSION_DENIED, ErrorReason.ERROR_REASON_PLAN_MODE_DENIED, "server_id"
    ),
    ToolChanged: _table(_PRECONDITION, ErrorReason.ERROR_REASON_TOOL_CHANGED, "digest"),
    BadArguments: _table(
        grpc.StatusCode.INVALID_ARGUMENT, ErrorReason.ERROR_REASON_BAD_ARGUMENTS, "problem"
    ),
    CatalogueChanged: _table(
        grpc.StatusCode.ABORTED, ErrorReason.ERROR_REASON_CATALOGUE_CHANGED, "digest"
    ),
    StaleOwner: _table(_PRECONDITION, ErrorReason.ERROR_REASON_STALE_OWNER, "owner_epoch"),
    JournalChanged: _journal_changed,
    ExecutionIdReused: _table(
        grpc.StatusCode.ALREADY_EXISTS, ErrorReason.ERROR_REASON_EXECUTION_ID_REUSED, "execution_id"
    ),
    CallAcknowledged: _table(
        _PRECONDITION, ErrorReason.ERROR_REASON_CALL_ACKNOWLEDGED, "execution_id"
    ),
    TooManyCalls: _too_many,
    UpstreamFailed: _upstream,
    DatabaseUnavailable: _store_unavailable,
    # The generated servicers raise it for methods that are not implemented.
}
