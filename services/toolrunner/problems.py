"""The table that maps errors of this service to problems."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import grpc

from parley.api.workspace.v1.error_reason_pb2 import ErrorReason
from parley.rpc import ErrorTable, Problem, Violation
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.primitives import errors

DOMAIN: Final = "workspace.parley"
RETRY_AFTER_S: Final = 1.0
PATTERN_SHOWN: Final = 100


def _problem(
    status: grpc.StatusCode,
    reason: "ErrorReason.ValueType",
    error: Exception,
    **metadata: object,
) -> Problem:
    name = ErrorReason.Name(reason).removeprefix("ERROR_REASON_")
    texts: Mapping[str, str] = {key: str(value) for key, value in metadata.items()}
    return Problem(status, name, str(error), texts)


def _soon(reason: "ErrorReason.ValueType", error: Exception) -> Problem:
    """Return a problem that is temporary, and may be retried automatically."""
    problem = _problem(grpc.StatusCode.UNAVAILABLE, reason, error)
    return replace(problem, retry_after_s=RETRY_AFTER_S)


def _invalid(error: errors.InvalidRequest) -> Problem:
    return Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        str(error),
        {"field": error.field},
        violations=(Violation(error.field, error.problem),),
    )


_FILE_STATUS: Final = {
    Reason.INVALID_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.PATH_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.OUTSIDE_WORKSPACE: grpc.StatusCode.PERMISSION_DENIED,
    Reason.PATH_FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    Reason.WRONG_PATH_KIND: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.FILE_CHANGED: grpc.StatusCode.ABORTED,
    Reason.PATH_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    Reason.PAST_END: grpc.StatusCode.OUT_OF_RANGE,
    Reason.NOTHING_TO_UNDO: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.INVALID_PATTERN: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.FILE_TOO_LARGE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.NODE_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.NOT_A_REPOSITORY: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.CHECKPOINT_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.GIT_FAILED: grpc.StatusCode.FAILED_PRECONDITION,
}


def _file_refused(error: FileRefused) -> Problem:
    return Problem(_FILE_STATUS[error.reason], error.reason, str(error), error.metadata)


ERRORS: Final[ErrorTable] = {
    FileRefused: _file_refused,
    errors.ReadOnly: lambda error: _problem(
        grpc.StatusCode.PERMISSION_DENIED,
        ErrorReason.ERROR_REASON_READ_ONLY,
        error,
        profile="read_only",
        path=error.path,
    ),
    errors.ExecutionCancelled: lambda error: _problem(
        grpc.StatusCode.ABORTED, ErrorReason.ERROR_REASON_EXECUTION_CANCELLED, error
    ),
    errors.FileWorkerGone: lambda error: _soon(ErrorReason.ERROR_REASON_FILE_WORKER_GONE, error),
    # Not UNAVAILABLE, because an automatic retry would not determine the outcome.
    errors.OutcomeUnknown: lambda error: _problem(
        grpc.StatusCode.ABORTED, ErrorReason.ERROR_REASON_OUTCOME_UNKNOWN, error
    ),
    errors.InvalidRequest: _invalid,
    errors.ProcessNotFound: lambda error: _problem(
        grpc.StatusCode.NOT_FOUND,
        ErrorReason.ERROR_REASON_PROCESS_NOT_FOUND,
        error,
        process_id=error.process_id,
    ),
    errors.ProcessNotRunning: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_PROCESS_NOT_RUNNING,
        error,
        process_id=error.process_id,
    ),
    errors.NotAttachable: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_NOT_ATTACHABLE,
        error,
        process_id=error.process_id,
        wants=error.wants,
    ),
    errors.InputFull: lambda error: _problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        ErrorReason.ERROR_REASON_NODE_FULL,
        error,
        resource="stdin",
    ),
    errors.OutputGone: lambda error: _problem(
        grpc.StatusCode.DATA_LOSS,
        ErrorReason.ERROR_REASON_OUTPUT_GONE,
        error,
        process_id=error.process_id,
        oldest_cursor=error.oldest_cursor,
    ),
    errors.InvalidPattern: lambda error: _problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        ErrorReason.ERROR_REASON_INVALID_PATTERN,
        error,
        pattern=error.pattern[:PATTERN_SHOWN],
        problem=error.problem,
    ),
    errors.BadTicket: lambda error: _problem(
        grpc.StatusCode.PERMISSION_DENIED, ErrorReason.ERROR_REASON_BAD_TICKET, error
    ),
    errors.TooManyProcesses: lambda error: _problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        ErrorReason.ERROR_REASON_TOO_MANY_PROCESSES,
        error,
        scope=error.scope,
        limit=error.limit,
    ),
    errors.OutsideWorkspace: lambda error: _problem(
        grpc.StatusCode.PERMISSION_DENIED,
        ErrorReason.ERROR_REASON_OUTSIDE_WORKSPACE,
        error,
        path=error.path,
    ),
    errors.PathNotFound: lambda error: _problem(
        grpc.StatusCode.NOT_FOUND, ErrorReason.ERROR_REASON_PATH_NOT_FOUND, error, path=error.path
    ),
    errors.WrongPathKind: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_WRONG_PATH_KIND,
        error,
        path=error.path,
        kind="file",
    ),
    errors.SandboxTooWeak: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_SANDBOX_TOO_WEAK,
        error,
        level=error.level,
        required=error.required,
    ),
    errors.StaleOwner: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_STALE_OWNER,
        error,
        owner_epoch=error.owner_epoch,
        highest_epoch=error.highest_epoch,
    ),
    errors.JournalChanged: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_JOURNAL_CHANGED,
        error,
        journal_generation=error.generation,
    ),
    errors.ExecutionIdReused: lambda error: _problem(
        grpc.StatusCode.ALREADY_EXISTS,
        ErrorReason.ERROR_REASON_EXECUTION_ID_REUSED,
        error,
        execution_id=error.execution_id,
    ),
    errors.RequestIdReused: lambda error: _problem(
        grpc.StatusCode.ALREADY_EXISTS,
        ErrorReason.ERROR_REASON_REQUEST_ID_REUSED,
        error,
        request_id=error.request_id,
    ),
    # UNAVAILABLE, because without the journal the outcome of the effect cannot be determined.
    errors.JournalFailed: lambda error: _problem(
        grpc.StatusCode.UNAVAILABLE, ErrorReason.ERROR_REASON_NODE_FULL, error, resource="disk"
    ),
    errors.StalePlacement: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_STALE_PLACEMENT,
        error,
        workspace_id=error.workspace_id,
        epoch=error.epoch,
        highest_epoch=error.highest_epoch,
    ),
    errors.WorkspaceNotFound: lambda error: _problem(
        grpc.StatusCode.NOT_FOUND,
        ErrorReason.ERROR_REASON_WORKSPACE_NOT_FOUND,
        error,
        workspace_id=error.workspace_id,
    ),
    errors.WorkspaceNotReady: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_WORKSPACE_NOT_READY,
        error,
        state=error.state,
        next_step=error.next_step,
    ),
    errors.QuotaExceeded: lambda error: _problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        ErrorReason.ERROR_REASON_QUOTA_EXHAUSTED,
        error,
        dimension=error.dimension,
        used=error.used,
        limit=error.limit,
        remedy="remove files that are not needed",
    ),
    errors.NodeFull: lambda error: _problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        ErrorReason.ERROR_REASON_NODE_FULL,
        error,
        resource=error.resource,
    ),
    errors.NodeDraining: lambda error: _problem(
        grpc.StatusCode.UNAVAILABLE, ErrorReason.ERROR_REASON_DRAINING, error
    ),
    errors.ForkNotPossible: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_FORK_NOT_POSSIBLE,
        error,
        mode=error.mode,
        cause=error.cause,
    ),
    errors.NotAFork: lambda error: _problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        ErrorReason.ERROR_REASON_NOT_A_FORK,
        error,
        workspace_id=error.workspace_id,
    ),
    errors.MergeInterrupted: lambda error: _problem(
        grpc.StatusCode.ABORTED, ErrorReason.ERROR_REASON_FILE_CHANGED, error, path=error.path
    ),
    errors.SpawnerGone: lambda error: _soon(ErrorReason.ERROR_REASON_SPAWNER_GONE, error),
}
