"""Maps errors of spending limits to gRPC problems."""

from typing import Final

from chatd.spend.domain.limits import UsageLimitReached, dollars
from chatd.users.domain.groups import GroupsUnavailable
from parley.rpc import ErrorTable, Problem

RETRY_GROUPS_AFTER_S = 2.0


def _usage_limit(error: UsageLimitReached) -> Problem:
    return Problem.of(
        "USAGE_LIMIT",
        f"The spending limit of {dollars(error.limit_micros)} is reached; go on after "
        f"{error.resets_at:%Y-%m-%d %H:%M} UTC, or ask an administrator to raise it.",
        {
            "spent_micros": str(error.spent_micros),
            "limit_micros": str(error.limit_micros),
            "resets_at": error.resets_at.isoformat().replace("+00:00", "Z"),
        },
        retry_after_s=max(0.0, error.retry_after_s),
    )


def _groups_unavailable(_: GroupsUnavailable) -> Problem:
    return Problem.of(
        "GROUPS_UNAVAILABLE",
        "Which spending limit binds you depends on your groups, which cannot be asked for now; "
        "try again.",
        retry_after_s=RETRY_GROUPS_AFTER_S,
    )


SPEND_ERRORS: Final[ErrorTable] = {
    UsageLimitReached: _usage_limit,
    GroupsUnavailable: _groups_unavailable,
}
