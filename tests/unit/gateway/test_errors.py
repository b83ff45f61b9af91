import grpc
import pytest

from gateway.errors import (
    GENERIC_DETAIL,
    HTTP_STATUS,
    Circumstances,
    UpstreamRefused,
    answer_to,
    pointer_of,
    refusal_of,
)
from gateway.identity_errors import ERRORS, IdentityRefusal, InvalidRequest, TooManyTokens
from parley.postgres import DatabaseUnavailable
from parley.rpc import Problem, Violation

HERE = Circumstances("https://parley.test", "/api/v1/chats", "request-1", "f" * 32)


def upstream(status: grpc.StatusCode, reason: str, message: str = "said") -> UpstreamRefused:
    return UpstreamRefused(Problem(status, reason, message))


def test_every_status_of_grpc_has_one_of_http() -> None:
    assert set(HTTP_STATUS) == set(grpc.StatusCode) - {grpc.StatusCode.OK}


@pytest.mark.parametrize(
    ("status", "reason", "http_status"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "MODEL_NOT_FOUND", 400),
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST", 422),
        (grpc.StatusCode.FAILED_PRECONDITION, "CHAT_ARCHIVED", 409),
        (grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", 404),
        (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN", 403),
        (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", 422),
        (grpc.StatusCode.ABORTED, "VERSION_CONFLICT", 409),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", 429),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "USAGE_LIMIT", 409),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE", 413),
        (grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED", 501),
        (grpc.StatusCode.UNAVAILABLE, "DRAINING", 503),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", 504),
        (grpc.StatusCode.CANCELLED, "CANCELLED", 499),
    ],
)
def test_a_refusal_of_another_service_keeps_its_reason(
    status: grpc.StatusCode, reason: str, http_status: int
) -> None:
    refusal = refusal_of(upstream(status, reason))

    assert (refusal.status, refusal.code) == (http_status, reason)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret"),
        upstream(grpc.StatusCode.INTERNAL, "INTERNAL", "secret"),
        upstream(grpc.StatusCode.UNKNOWN, "UNKNOWN", "secret"),
        upstream(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_EXPIRED", "secret"),
    ],
)
def test_what_is_our_own_fault_tells_nothing_of_itself(error: Exception) -> None:
    assert answer_to(error, HERE).document == {
        "type": "https://parley.test/problems/INTERNAL",
        "title": "Internal",
        "status": 500,
        "detail": GENERIC_DETAIL[500],
        "instance": "/api/v1/chats",
        "code": "INTERNAL",
        "request_id": "request-1",
        "trace_id": "f" * 32,
        "retryable": False,
    }


def test_what_grpc_itself_says_is_not_repeated() -> None:
    refused = upstream(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "failed: unix:/home/x.sock")
    answer = answer_to(refused, HERE)

    assert answer.document["detail"] == GENERIC_DETAIL[503]
    assert (answer.headers, answer.document["retry_after_ms"]) == ({"retry-after": "1"}, 1000)


def test_fields_at_fault_are_pointed_at() -> None:
    error = InvalidRequest(Violation("content[0].text", "too long"), Violation("title", "empty"))

    answer = answer_to(error, HERE)

    assert answer.status == 422
    assert answer.document["errors"] == [
        {"pointer": "/content/0/text", "code": "INVALID", "detail": "too long"},
        {"pointer": "/title", "code": "INVALID", "detail": "empty"},
    ]


def test_metadata_is_shown_only_where_the_table_says_so() -> None:
    problem = Problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        "TRANSITION_NOT_ALLOWED",
        "said",
        {"status": "running", "command": "archive", "worker_id": "w"},
    )

    assert refusal_of(UpstreamRefused(problem)).facts == {
        "status": "running",
        "command": "archive",
    }


def test_errors_of_identity_are_told_alike_over_http() -> None:
    assert refusal_of(TooManyTokens(20_000)).code == "TOO_MANY_TOKENS"
    assert refusal_of(DatabaseUnavailable("refused")).status == 503


def test_every_refusal_about_identity_is_in_the_table() -> None:
    assert {kind for kind in IdentityRefusal.__subclasses__() if kind not in ERRORS} == set()


def test_pointers_escape_what_json_pointer_reserves() -> None:
    assert pointer_of("a~b.c[2]") == "/a~0b/c/2"


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("content[0].text", {"pointer": "/content/0/text"}),
        ("content[0].file.file_id", {"pointer": "/content/0/file_id"}),
        ("content[2].file_reference.start_line", {"pointer": "/content/2/start_line"}),
        ("client_tools[1].input_schema_json", {"pointer": "/client_tools/1/input_schema"}),
        ("chat.title", {"pointer": "/title"}),
        ("model.prices.input", {"pointer": "/prices/input"}),
        ("user.role", {"pointer": "/role"}),
        ("limit.limit_micros", {"pointer": "/limit_micros"}),
        ("model_id", {"pointer": "/model_id"}),
        ("query", {"parameter": "q"}),
        ("page_token", {"parameter": "cursor"}),
        ("page_size", {"parameter": "limit"}),
        ("request_id", {"parameter": "Idempotency-Key"}),
    ],
)
def test_a_field_of_a_proto_is_told_as_what_the_client_wrote(
    field: str, place: dict[str, str]
) -> None:
    problem = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        "said",
        violations=(Violation(field, "wrong"),),
    )

    (error,) = refusal_of(UpstreamRefused(problem)).errors

    assert error.document() == {**place, "code": "INVALID", "detail": "wrong"}
