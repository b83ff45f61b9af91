import grpc
import pytest

from parley.client import (
    AnswerFailed,
    AnswerNeedsAction,
    AnswerTimeout,
    Busy,
    CallFailed,
    Conflict,
    DeadlineExceeded,
    ErrorKind,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    TurnError,
    Unauthenticated,
    Unavailable,
)
from parley.client.errors import error_of
from parley.rpc import Problem

EXPECTED: dict[grpc.StatusCode, type[CallFailed]] = {
    grpc.StatusCode.CANCELLED: ServerFault,
    grpc.StatusCode.UNKNOWN: ServerFault,
    grpc.StatusCode.INVALID_ARGUMENT: Invalid,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Busy,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.OUT_OF_RANGE: Invalid,
    grpc.StatusCode.UNIMPLEMENTED: ServerFault,
    grpc.StatusCode.INTERNAL: ServerFault,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DATA_LOSS: ServerFault,
}


@pytest.mark.parametrize("status", [each for each in grpc.StatusCode if each.name != "OK"])
def test_every_status_has_its_error(status: grpc.StatusCode) -> None:
    problem = Problem(status, "QUEUE_FULL", "the queue is full")

    error = error_of(problem)

    assert type(error) is EXPECTED[status]
    assert (error.reason, error.problem) == ("QUEUE_FULL", problem)


def test_a_question_without_an_answer_says_why() -> None:
    no_key = TurnError(ErrorKind.MISSING_KEY, "set a key")

    assert AnswerFailed("c", no_key).reason == "MISSING_KEY"
    assert AnswerFailed("c", None).reason == "TURN_FAILED"
    assert AnswerNeedsAction("c").reason == "REQUIRES_ACTION"
    assert AnswerTimeout("c", 5.0).reason == "ANSWER_LATE"
    assert AnswerTimeout("c", 5.0).chat_id == "c"
