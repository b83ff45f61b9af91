"""What a failed request to an executor means for the tool call it carried."""

import json
from dataclasses import replace
from typing import Final

import grpc

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Executor, ExecutorUnreachable, Outcome
from parley.rpc import Problem, problem_of

# These say nothing about whether a call was journaled.
AMBIGUOUS = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
#: What people and models are told instead of the words of the transport, which name addresses.
WORDS: Final = {
    grpc.StatusCode.UNAVAILABLE: "it cannot be reached",
    grpc.StatusCode.DEADLINE_EXCEEDED: "it did not answer in time",
    grpc.StatusCode.CANCELLED: "the connection was cut",
    grpc.StatusCode.UNIMPLEMENTED: "it does not offer this",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "this is more than it takes",
    grpc.StatusCode.UNAUTHENTICATED: "it does not accept calls of this service",
    grpc.StatusCode.PERMISSION_DENIED: "it does not accept this call",
}
OTHER_WORDS: Final = "it failed unexpectedly"
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
    return plain_problem(error)


def plain_problem(error: grpc.aio.AioRpcError) -> Problem:
    """Return the problem of a request, without the words of the transport or of a crash."""
    problem = problem_of(error)
    if problem.reason != error.code().name:
        return problem
    return replace(problem, message=WORDS.get(error.code(), OTHER_WORDS))


def refused(problem: Problem) -> Outcome:
    """Return what the model is told of a call that an executor refused."""
    told = {"error": problem.message, "reason": problem.reason}
    return Outcome(ToolOutcome.FAILED, json.dumps(told))
