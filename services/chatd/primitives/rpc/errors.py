"""Maps the errors that every slice can raise, and those of the database, to gRPC problems."""

from collections.abc import Mapping
from typing import Final

from chatd.primitives.domain.errors import (
    ChatNotFound,
    CheckUnavailable,
    InvalidRequest,
    NameTaken,
    NotPermitted,
    RequestIdReused,
    ResourceNotFound,
    UnknownIds,
    VersionConflict,
    WorkspaceNotFound,
)
from parley.postgres import DatabaseBusy, DatabaseUnavailable
from parley.rpc import ErrorTable, Problem, Violation

RETRY_STORE_AFTER_S = 1.0
RETRY_CHECK_AFTER_S = 2.0


def _chat_not_found(error: ChatNotFound) -> Problem:
    return Problem.of(
        "CHAT_NOT_FOUND",
        "There is no such chat, or you may not see it.",
        {"chat_id": error.chat_id},
    )


def _unknown_ids(error: UnknownIds) -> Problem:
    return Problem.of(
        "UNKNOWN_ID",
        str(error),
        {"resource": error.resource},
        violations=violations_of(error.problems),
    )


def _check_unavailable(error: CheckUnavailable) -> Problem:
    return Problem.of(
        "CHECK_UNAVAILABLE",
        f"Whether there is such a {error.resource} cannot be asked now, and nothing was changed; "
        "try again.",
        {"resource": error.resource},
        retry_after_s=RETRY_CHECK_AFTER_S,
    )


def _request_id_reused(error: RequestIdReused) -> Problem:
    return Problem.of(
        "REQUEST_ID_REUSED",
        "The request id was used before with another body; choose a new one.",
        {"request_id": error.request_id},
    )


def _not_permitted(error: NotPermitted) -> Problem:
    return Problem.of(
        "FORBIDDEN",
        f"Only administrators may {error.what}.",
        {},
    )


def _workspace_not_found(error: WorkspaceNotFound) -> Problem:
    return Problem.of(
        "WORKSPACE_NOT_FOUND",
        "There is no such workspace, or you may not see it.",
        {"workspace_id": error.workspace_id},
    )


def _resource_not_found(error: ResourceNotFound) -> Problem:
    return Problem.of(
        "RESOURCE_NOT_FOUND",
        f"There is no such {error.resource}, or you may not see it.",
        {"resource": error.resource, "id": error.resource_id},
    )


def _name_taken(error: NameTaken) -> Problem:
    return Problem.of(
        "NAME_TAKEN",
        f"Another {error.resource} has this name; choose another one.",
        {"resource": error.resource, "name": error.name},
    )


def _version_conflict(error: VersionConflict) -> Problem:
    return Problem.of(
        "VERSION_CONFLICT",
        "Somebody changed it meanwhile; read it and try again.",
        {"etag": error.etag},
    )


def _invalid(error: InvalidRequest) -> Problem:
    return Problem.of(
        "INVALID_REQUEST",
        str(error),
        {"field": error.field},
        violations=tuple(Violation(field, problem) for field, problem in error.faults),
    )


def _unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem.of(
        "STORE_UNAVAILABLE",
        "The database cannot be reached; try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


def _contended(_: DatabaseBusy) -> Problem:
    return Problem.of(
        "STORE_BUSY",
        "Others have held what this changes for too long; nothing was changed, try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


def violations_of(problems: Mapping[str, str]) -> tuple[Violation, ...]:
    """Return the problems of fields as violations."""
    return tuple(Violation(field, why) for field, why in problems.items())


REQUEST_ERRORS: Final[ErrorTable] = {
    ChatNotFound: _chat_not_found,
    UnknownIds: _unknown_ids,
    CheckUnavailable: _check_unavailable,
    RequestIdReused: _request_id_reused,
    NotPermitted: _not_permitted,
    WorkspaceNotFound: _workspace_not_found,
    ResourceNotFound: _resource_not_found,
    NameTaken: _name_taken,
    VersionConflict: _version_conflict,
    InvalidRequest: _invalid,
    DatabaseUnavailable: _unavailable,
    DatabaseBusy: _contended,
}
