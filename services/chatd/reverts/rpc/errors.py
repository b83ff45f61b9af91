"""Maps errors of reverts to gRPC problems."""

from typing import Final

from chatd.chats.domain.errors import RevertNotFound, RevertSuperseded
from chatd.turns.domain.ports import RestoreFailed
from parley.rpc import ErrorTable, Problem


def _revert_not_found(error: RevertNotFound) -> Problem:
    return Problem.of(
        "REVERT_NOT_FOUND",
        "There is no such revert of this chat that can be undone.",
        {"revert_id": error.revert_id},
    )


def _revert_superseded(error: RevertSuperseded) -> Problem:
    return Problem.of(
        "REVERT_SUPERSEDED",
        "The chat went on after the revert, which cannot be undone any more.",
        {"revert_id": error.revert_id},
    )


def _files_unavailable(error: RestoreFailed) -> Problem:
    return Problem.of("FILES_UNAVAILABLE", str(error), {})


REVERT_ERRORS: Final[ErrorTable] = {
    RevertNotFound: _revert_not_found,
    RevertSuperseded: _revert_superseded,
    RestoreFailed: _files_unavailable,
}
