"""What a failed call to an executor means for the tool call it carried."""

import json

import grpc

from chatd.domain.parts import ToolOutcome
from chatd.domain.tools import Outcome
from parley.rpc import problem_of

UNKNOWN_OUTCOME = Outcome(
    ToolOutcome.UNKNOWN,
    json.dumps(
        {
            "error": "The service was interrupted: this call may or may not have taken effect. "
            "Check before you repeat it."
        }
    ),
)

# Before an executor has journaled a call these say nothing about whether it started.
AMBIGUOUS = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}


def outcome_of_failure(error: grpc.aio.AioRpcError) -> Outcome:
    """Return what a failed call means: refused for certain, or nobody knows."""
    if error.code() in AMBIGUOUS:
        return UNKNOWN_OUTCOME
    problem = problem_of(error)
    told = {"error": problem.message, "reason": problem.reason}
    return Outcome(ToolOutcome.FAILED, json.dumps(told))
