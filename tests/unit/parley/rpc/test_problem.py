import grpc
import pytest

from parley.rpc import LIMITS, Problem, Violation, problem_of
from parley.rpc.problem import DETAILS_KEY, message_of, trailers


def failed_call(problem: Problem) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        problem.status,
        grpc.aio.Metadata(),
        grpc.aio.Metadata(*trailers(problem, domain="chatd.parley")),
        message_of(problem),
    )


def bare_error(status: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


def test_a_problem_arrives_as_it_was_sent() -> None:
    problem = Problem(
        status=grpc.StatusCode.INVALID_ARGUMENT,
        reason="TITLE_TOO_LONG",
        message="the title has 300 characters; 200 are allowed",
        metadata={"limit": "200"},
        retry_after_s=1.5,
        violations=(Violation("title", "at most 200 characters"),),
    )
    assert problem_of(failed_call(problem)) == problem


def test_a_problem_without_details_arrives_without_them() -> None:
    problem = Problem(grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", "no such chat")
    assert problem_of(failed_call(problem)) == problem


def test_a_long_problem_is_cut_to_what_trailers_carry() -> None:
    problem = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "BAD",
        "x" * 100_000,
        violations=tuple(Violation(str(number), "bad") for number in range(1000)),
    )
    told = problem_of(failed_call(problem))
    assert told.message == "x" * LIMITS.problem_text_max
    assert told.violations == problem.violations[: LIMITS.violations_max]


def test_an_error_of_another_server_keeps_its_status_as_the_reason() -> None:
    error = bare_error(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    assert problem_of(error) == Problem(
        grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED", "Method not found!"
    )


def test_details_that_cannot_be_read_are_left_out() -> None:
    error = grpc.aio.AioRpcError(
        grpc.StatusCode.ABORTED,
        grpc.aio.Metadata(),
        grpc.aio.Metadata((DETAILS_KEY, b"\xff\xff\xff")),
        "aborted",
    )
    assert problem_of(error) == Problem(grpc.StatusCode.ABORTED, "ABORTED", "aborted")


def test_an_oversized_message_is_explained() -> None:
    error = bare_error(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "CLIENT: Sent message larger than max (9 vs. 4)"
    )
    assert problem_of(error) == Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "MESSAGE_TOO_LARGE",
        "the message has 9 bytes and 4 are allowed; split it or stream it",
        {"size_bytes": "9", "limit_bytes": "4"},
    )


def test_a_problem_to_answer_with_gets_the_status_of_its_reason() -> None:
    assert Problem.of("QUEUE_FULL", "wait", {"queue_length_max": "20"}) == Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", "wait", {"queue_length_max": "20"}
    )


def test_no_call_is_answered_with_a_reason_of_http_alone() -> None:
    with pytest.raises(ValueError, match="INVALID_JSON"):
        Problem.of("INVALID_JSON", "no")
