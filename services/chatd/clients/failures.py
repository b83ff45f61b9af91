"""What a failed request to an executor means for the tool call it carried."""

import json

import grpc

from chatd.domain.parts import ToolOutcome
from chatd.domain.tools import Executor, ExecutorUnreachable, Outcome
from parley.rpc import Problem, problem_of

# These say nothing about whether a call was journaled.
AMBIGUOUS = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
JOURNAL_CHANGED = "JOURNAL_CHANGED"
#: What a node says of a workspace that is not there, or not as it was thought to be.
MOVED = ("STALE_PLACEMENT", "WORKSPACE_NOT_FOUND", "WORKSPACE_NOT_READY")


def certain_problem(error: grpc.aio.AioRpcError, executor: Executor) -> Problem:
    """Return the problem of a request that was refused for certain.

    Raises:
        ExecutorUnreachable: nobody knows whether the request arrived.
    """
    if error.code() in AMBIGUOUS:
        raise ExecutorUnreachable(executor) from error
    return problem_of(error)


def refused(problem: Problem) -> Outcome:
    """Return what the model is told of a call that an executor refused."""
    told = {"error": problem.message, "reason": problem.reason}
    return Outcome(ToolOutcome.FAILED, json.dumps(told))
