"""Maps errors of push subscriptions to gRPC problems."""

from chatd.push.domain.subscription import (
    PushNotAccepted,
    PushTestedTooOften,
    TooManySubscriptions,
)
from parley.rpc import ErrorTable, Problem


def _too_many(error: TooManySubscriptions) -> Problem:
    return Problem.of(
        "TOO_MANY_PUSH_SUBSCRIPTIONS",
        f"You have {error.subscriptions_max} push subscriptions already; delete one first.",
        {"subscriptions_max": str(error.subscriptions_max)},
    )


def _not_accepted(error: PushNotAccepted) -> Problem:
    return Problem.of(
        "PUSH_NOT_ACCEPTED",
        f"The notification was not accepted: {error.problem}.",
        {"problem": error.problem},
    )


def _too_often(error: PushTestedTooOften) -> Problem:
    return Problem.of(
        "PUSH_TESTED_TOO_OFTEN",
        f"The device is tested at most once in {error.every_s:g} s.",
        {"every_s": f"{error.every_s:g}"},
    )


PUSH_ERRORS: ErrorTable = {
    TooManySubscriptions: _too_many,
    PushNotAccepted: _not_accepted,
    PushTestedTooOften: _too_often,
}
