"""Maps failed requests to an executor to outcomes of the tool call."""

import json
from dataclasses import replace
from typing import Final

import grpc

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Executor, ExecutorUnreachable, Outcome
from parley.rpc import Problem, problem_of

# After these it is unknown whether a call was journaled.
AMBIGUOUS = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
#: Texts for users and models instead of transport errors, which contain addresses.
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
#: Reasons with which a node refuses because the workspace is elsewhere or in another state.
MOVED = ("STALE_PLACEMENT", "WORKSPACE_NOT_FOUND", "WORKSPACE_NOT_READY")


def certain_problem(error: grpc.aio.AioRpcError, executor: Executor) -> Problem:
    """Return the problem of a request that was definitively refused.

    Raises:
        ExecutorUnreachable: whether the request arrived is unknown.
    """
    if error.code() in AMBIGUOUS:
        raise ExecutorUnreachable(executor) from error
    return plain_problem(error)


def plain_problem(error: grpc.aio.AioRpcError) -> Problem:
    """Return the problem of a request, without texts of the transport or of a crash."""
    problem = problem_of(error)
    if problem.reason != error.code().name:
        return problem
    return replace(problem, message=WORDS.get(error.code(), OTHER_WORDS))


def refused(problem: Problem) -> Outcome:
    """Return the outcome of a call that an executor refused."""
    document = {"error": problem.message, "reason": problem.reason}
    return Outcome(ToolOutcome.FAILED, json.dumps(document))
