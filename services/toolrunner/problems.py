"""The table that maps errors of this service to problems."""

from typing import Final

from parley.rpc import ErrorTable, Problem, Violation
from toolrunner.filesystem.errors import FileRefused
from toolrunner.primitives import errors

DOMAIN: Final = "workspace.parley"
RETRY_AFTER_S: Final = 1.0
PATTERN_SHOWN: Final = 100


def _problem(reason: str, error: Exception, **metadata: object) -> Problem:
    return Problem.of(reason, str(error), {key: str(value) for key, value in metadata.items()})


def _soon(reason: str, error: Exception) -> Problem:
    """Return a problem that is temporary, and may be retried automatically."""
    return Problem.of(reason, str(error), retry_after_s=RETRY_AFTER_S)


def _invalid(error: errors.InvalidRequest) -> Problem:
    return Problem.of(
        "INVALID_REQUEST",
        str(error),
        {"field": error.field},
        violations=(Violation(error.field, error.problem),),
    )


def _file_refused(error: FileRefused) -> Problem:
    return Problem.of(error.reason, str(error), error.metadata)


ERRORS: Final[ErrorTable] = {
    FileRefused: _file_refused,
    errors.ReadOnly: lambda error: _problem(
        "READ_ONLY", error, profile="read_only", path=error.path
    ),
    errors.ExecutionCancelled: lambda error: _problem("EXECUTION_CANCELLED", error),
    errors.FileWorkerGone: lambda error: _soon("FILE_WORKER_GONE", error),
    errors.OutcomeUnknown: lambda error: _problem("OUTCOME_UNKNOWN", error),
    errors.InvalidRequest: _invalid,
    errors.ProcessNotFound: lambda error: _problem(
        "PROCESS_NOT_FOUND", error, process_id=error.process_id
    ),
    errors.ProcessNotRunning: lambda error: _problem(
        "PROCESS_NOT_RUNNING", error, process_id=error.process_id
    ),
    errors.NotAttachable: lambda error: _problem(
        "NOT_ATTACHABLE", error, process_id=error.process_id, wants=error.wants
    ),
    errors.InputFull: lambda error: _problem("NODE_FULL", error, resource="stdin"),
    errors.OutputGone: lambda error: _problem(
        "OUTPUT_GONE", error, process_id=error.process_id, oldest_cursor=error.oldest_cursor
    ),
    errors.InvalidPattern: lambda error: _problem(
        "INVALID_PATTERN", error, pattern=error.pattern[:PATTERN_SHOWN], problem=error.problem
    ),
    errors.BadTicket: lambda error: _problem("BAD_TICKET", error),
    errors.TooManyProcesses: lambda error: _problem(
        "TOO_MANY_PROCESSES", error, scope=error.scope, limit=error.limit
    ),
    errors.OutsideWorkspace: lambda error: _problem("OUTSIDE_WORKSPACE", error, path=error.path),
    errors.PathNotFound: lambda error: _problem("PATH_NOT_FOUND", error, path=error.path),
    errors.WrongPathKind: lambda error: _problem(
        "WRONG_PATH_KIND", error, path=error.path, kind="file"
    ),
    errors.SandboxTooWeak: lambda error: _problem(
        "SANDBOX_TOO_WEAK", error, level=error.level, required=error.required
    ),
    errors.StaleOwner: lambda error: _problem(
        "STALE_OWNER", error, owner_epoch=error.owner_epoch, highest_epoch=error.highest_epoch
    ),
    errors.JournalChanged: lambda error: _problem(
        "JOURNAL_CHANGED", error, journal_generation=error.generation
    ),
    errors.ExecutionIdReused: lambda error: _problem(
        "EXECUTION_ID_REUSED", error, execution_id=error.execution_id
    ),
    errors.RequestIdReused: lambda error: _problem(
        "REQUEST_ID_REUSED", error, request_id=error.request_id
    ),
    errors.JournalFailed: lambda error: _problem("JOURNAL_UNAVAILABLE", error),
    errors.StalePlacement: lambda error: _problem(
        "STALE_PLACEMENT",
        error,
        workspace_id=error.workspace_id,
        epoch=error.epoch,
        highest_epoch=error.highest_epoch,
    ),
    errors.WorkspaceNotFound: lambda error: _problem(
        "WORKSPACE_NOT_FOUND", error, workspace_id=error.workspace_id
    ),
    errors.WorkspaceNotReady: lambda error: _problem(
        "WORKSPACE_NOT_READY", error, state=error.state, next_step=error.next_step
    ),
    errors.QuotaExceeded: lambda error: _problem(
        "QUOTA_EXHAUSTED",
        error,
        dimension=error.dimension,
        used=error.used,
        limit=error.limit,
        remedy="remove files that are not needed",
    ),
    errors.NodeFull: lambda error: _problem("NODE_FULL", error, resource=error.resource),
    errors.NodeDraining: lambda error: _problem("DRAINING", error),
    errors.ForkNotPossible: lambda error: _problem(
        "FORK_NOT_POSSIBLE", error, mode=error.mode, cause=error.cause
    ),
    errors.NotAFork: lambda error: _problem("NOT_A_FORK", error, workspace_id=error.workspace_id),
    errors.MergeInterrupted: lambda error: _problem("FILE_CHANGED", error, path=error.path),
    errors.MergeUnfinished: lambda error: _problem("OUTCOME_UNKNOWN", error),
    errors.MergeSetAside: lambda error: _problem("OUTCOME_UNKNOWN", error),
    errors.SpawnerGone: lambda error: _soon("SPAWNER_GONE", error),
}
