"""Maps errors of approval rules to gRPC problems."""

from typing import Final

from chatd.approvals.domain.errors import TooManyRules
from parley.rpc import ErrorTable, Problem


def _too_many_rules(error: TooManyRules) -> Problem:
    return Problem.of(
        "TOO_MANY_RULES",
        f"There are {error.rules_max} approval rules already; delete one first.",
        {"rules_max": str(error.rules_max)},
    )


APPROVAL_ERRORS: Final[ErrorTable] = {
    TooManyRules: _too_many_rules,
}
