"""The error table of mcpgateway: maps errors to gRPC problems."""

from collections.abc import Callable
from typing import Final

from mcpgateway.servers.errors import (
    BadArguments,
    CallAcknowledged,
    CallNotFound,
    CatalogueChanged,
    CredentialsNeeded,
    CredentialsRefused,
    ExecutionIdReused,
    GroupsUnavailable,
    InvalidRequest,
    JournalChanged,
    McpError,
    MissingUserValues,
    NeedsConnect,
    NeedsReconnect,
    PlanModeDenied,
    RequestIdReused,
    ServerChanged,
    ServerDisabled,
    ServerNotFound,
    SlugInUse,
    SlugTaken,
    StaleOwner,
    ToolChanged,
    ToolDenied,
    ToolNotFound,
    ToolQuarantined,
    TooManyCalls,
    UpstreamFailed,
    VersionConflict,
)
from parley.postgres import DatabaseBusy, DatabaseUnavailable
from parley.rpc import ErrorTable, Problem, Violation

DOMAIN: Final = "mcp.parley"
RETRY_AFTER_S: Final = 1.0


def _table(reason: str, *attributes: str) -> Callable[[McpError], Problem]:
    """Return a function that converts an error to a problem, with attributes as metadata."""

    def tell(error: McpError) -> Problem:
        metadata = {attribute: str(getattr(error, attribute)) for attribute in attributes}
        return Problem.of(reason, str(error), metadata)

    return tell


def _invalid(error: InvalidRequest) -> Problem:
    violations = tuple(Violation(field, text) for field, text in error.problems.items())
    return Problem.of("INVALID_REQUEST", str(error), violations=violations)


def _credentials_needed(error: CredentialsNeeded) -> Problem:
    metadata = {"old_origin": error.old_origin, "new_origin": error.new_origin}
    violation = Violation("credentials", f"give them again, for {error.new_origin}")
    return Problem.of("CREDENTIALS_NEEDED", str(error), metadata, violations=(violation,))


def _journal_changed(error: JournalChanged) -> Problem:
    metadata = {"journal_generation": error.generation}
    return Problem.of("JOURNAL_CHANGED", str(error), metadata)


def _too_many(error: TooManyCalls) -> Problem:
    return Problem.of(
        "TOO_MANY_CALLS",
        str(error),
        {"calls_max": str(error.calls_max)},
        retry_after_s=RETRY_AFTER_S,
    )


def _upstream(error: UpstreamFailed) -> Problem:
    return Problem.of(
        error.reason,
        str(error),
        retry_after_s=error.retry_after_ms / 1000 if error.retry_after_ms else None,
    )


def _groups_unavailable(error: GroupsUnavailable) -> Problem:
    return Problem.of("ACCESS_UNKNOWN", str(error), retry_after_s=RETRY_AFTER_S)


def _store_unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem.of(
        "STORE_UNAVAILABLE",
        "the database cannot be reached; try again",
        retry_after_s=RETRY_AFTER_S,
    )


def _store_busy(_: DatabaseBusy) -> Problem:
    # Whether a call was started before is not known here, so that it is no TOO_MANY_CALLS.
    return Problem.of(
        "STORE_UNAVAILABLE", "the database is busy; try again", retry_after_s=RETRY_AFTER_S
    )


ERRORS: ErrorTable = {
    InvalidRequest: _invalid,
    RequestIdReused: _table("REQUEST_ID_REUSED", "request_id"),
    ServerNotFound: _table("SERVER_NOT_FOUND", "server_id"),
    ServerDisabled: _table("SERVER_DISABLED", "server_id"),
    SlugTaken: _table("SLUG_TAKEN", "slug"),
    SlugInUse: _table("SLUG_IN_USE", "slug"),
    CredentialsNeeded: _credentials_needed,
    VersionConflict: _table("VERSION_CONFLICT", "version"),
    GroupsUnavailable: _groups_unavailable,
    NeedsConnect: _table("NEEDS_CONNECT", "server_id"),
    NeedsReconnect: _table("NEEDS_RECONNECT", "server_id"),
    MissingUserValues: _table("MISSING_USER_VALUES", "server_id", "headers"),
    ToolQuarantined: _table("TOOL_QUARANTINED", "server_id", "tool"),
    ToolNotFound: _table("TOOL_NOT_FOUND", "server_id", "tool"),
    ToolDenied: _table("TOOL_DENIED", "server_id", "tool"),
    PlanModeDenied: _table("PLAN_MODE_DENIED", "server_id"),
    ToolChanged: _table("TOOL_CHANGED", "digest"),
    BadArguments: _table("BAD_ARGUMENTS", "problem"),
    CatalogueChanged: _table("CATALOGUE_CHANGED", "digest"),
    StaleOwner: _table("STALE_OWNER", "owner_epoch"),
    JournalChanged: _journal_changed,
    ExecutionIdReused: _table("EXECUTION_ID_REUSED", "execution_id"),
    CallAcknowledged: _table("CALL_ACKNOWLEDGED", "execution_id"),
    CallNotFound: _table("CALL_NOT_FOUND", "execution_id"),
    TooManyCalls: _too_many,
    ServerChanged: _table("CONFIG_SUPERSEDED", "server_id"),
    UpstreamFailed: _upstream,
    CredentialsRefused: _upstream,
    DatabaseUnavailable: _store_unavailable,
    DatabaseBusy: _store_busy,
}
