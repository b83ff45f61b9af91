import grpc
import pytest

from gateway.http.problems.errors import (
    FACT_NAMES,
    ProblemContext,
    UpstreamProblem,
    _title,
    answer_to,
    http_problem_of,
)
from gateway.http.problems.field_paths import RouteInputs, pointer_of
from gateway.identity.errors import IdentityError, InvalidRequest, TooManyTokens
from gateway.identity.problems import ERRORS
from gateway.web.problem_pages import index_body, problem_body
from parley.contract.errors import ERROR_SPECS
from parley.postgres import DatabaseUnavailable
from parley.rpc import Problem, Violation
from support.gateway.bodies import body

NEW_CHAT = body("POST /chats").type
NEW_MESSAGE = body("POST /chats/{chat_id}/messages").type
CHAT_PATCH = body("PATCH /chats/{chat_id}").type
NEW_MODEL = body("POST /models").type
USER_PATCH = body("PATCH /users/{user_id}").type
NEW_SPEND_LIMIT = body("PUT /spend-limits/everyone").type
NEW_TEMPLATE = body("POST /templates").type
NEW_WORKSPACE = body("POST /workspaces").type
NEW_SECRET = body("POST /secrets").type
NEW_PROCESS = body("POST /chats/{chat_id}/processes").type
RESTORED = body("POST /chats/{chat_id}/checkpoints/restore").type

CREATION = RouteInputs("/api/v1/chats", (), NEW_CHAT)
HERE = ProblemContext("https://parley.test", "/api/v1/chats", "request-1", "f" * 32, CREATION)


def upstream(status: grpc.StatusCode, reason: str, message: str = "said") -> UpstreamProblem:
    return UpstreamProblem(Problem(status, reason, message))


@pytest.mark.parametrize(
    ("status", "reason", "http_status"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "BAD_ARGUMENTS", 400),
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", 400),
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST", 422),
        (grpc.StatusCode.FAILED_PRECONDITION, "CHAT_ARCHIVED", 409),
        (grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", 404),
        (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN", 403),
        (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", 422),
        (grpc.StatusCode.ABORTED, "VERSION_CONFLICT", 409),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", 429),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "USAGE_LIMIT", 429),
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
    refusal = http_problem_of(upstream(status, reason))

    assert (refusal.status, refusal.code) == (http_status, reason)


@pytest.mark.parametrize(
    ("status", "http_status", "is_retryable"),
    [
        (grpc.StatusCode.FAILED_PRECONDITION, 409, False),
        (grpc.StatusCode.UNAVAILABLE, 503, True),
    ],
)
def test_a_reason_of_a_newer_service_is_answered_by_its_status(
    status: grpc.StatusCode, http_status: int, is_retryable: bool
) -> None:
    answer = answer_to(upstream(status, "NOT_KNOWN_HERE", "it is new"), HERE)

    document = answer.document
    assert (answer.status, document["code"], document["detail"], document["retryable"]) == (
        http_status,
        "NOT_KNOWN_HERE",
        "It is new.",
        is_retryable,
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret"),
        upstream(grpc.StatusCode.INTERNAL, "INTERNAL", "secret"),
        upstream(grpc.StatusCode.UNKNOWN, "UNKNOWN", "secret"),
        upstream(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_EXPIRED", "secret"),
        upstream(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED", "secret"),
        upstream(grpc.StatusCode.DATA_LOSS, "DATA_LOSS", "secret"),
    ],
)
def test_what_is_our_own_fault_tells_nothing_of_itself(error: Exception) -> None:
    assert answer_to(error, HERE).document == {
        "type": "https://parley.test/problems/INTERNAL",
        "title": "Internal",
        "status": 500,
        "detail": "Something went wrong here; the operator finds it in the logs by trace_id.",
        "instance": "/api/v1/chats",
        "code": "INTERNAL",
        "request_id": "request-1",
        "trace_id": "f" * 32,
        "retryable": False,
    }


def test_what_grpc_itself_says_is_not_repeated() -> None:
    refused = upstream(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "failed: unix:/home/x.sock")
    answer = answer_to(refused, HERE)

    assert answer.document["detail"] == (
        "A service behind this one does not answer; try again shortly."
    )
    assert (answer.headers, answer.document["retry_after_ms"]) == ({"retry-after": "1"}, 1000)


def test_fields_at_fault_are_pointed_at() -> None:
    error = InvalidRequest(Violation("content[0].text", "too long"), Violation("title", "empty"))

    answer = answer_to(error, HERE)

    assert answer.status == 422
    assert answer.document["errors"] == [
        {"pointer": "/content/0/text", "code": "INVALID", "detail": "Too long."},
        {"pointer": "/title", "code": "INVALID", "detail": "Empty."},
    ]
    assert answer.document["detail"] == "/content/0/text: Too long. /title: Empty."


def test_metadata_is_shown_only_where_the_table_says_so() -> None:
    problem = Problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        "TRANSITION_NOT_ALLOWED",
        "said",
        {"status": "running", "command": "archive", "worker_id": "w"},
    )

    assert http_problem_of(UpstreamProblem(problem)).facts == {"chat_status": "running"}


def test_no_fact_hides_a_member_that_every_problem_has() -> None:
    members = set(answer_to(RuntimeError("x"), HERE).document)
    facts = {
        FACT_NAMES.get(name, name) for spec in ERROR_SPECS.values() for name in spec.public_metadata
    }

    assert facts & members == set()


@pytest.mark.parametrize(
    ("reason", "route", "pointer"),
    [
        ("MODEL_NOT_FOUND", RouteInputs("/chats", (), NEW_CHAT), "/model_id"),
        ("FILE_NOT_FOUND", RouteInputs("/chats", (), NEW_CHAT), "/content"),
        ("TEMPLATE_NOT_FOUND", RouteInputs("/workspaces", (), NEW_WORKSPACE), "/template_id"),
        ("RESOURCE_NOT_FOUND", RouteInputs("/models", (), NEW_MODEL), "/provider_id"),
        ("MODEL_NOT_FOUND", RouteInputs("/models/{model_id}"), None),
        ("CHAT_NOT_FOUND", RouteInputs("/chats/{chat_id}", (), CHAT_PATCH), None),
    ],
)
def test_what_a_body_names_and_is_not_there_is_pointed_at(
    reason: str, route: RouteInputs, pointer: str | None
) -> None:
    refusal = http_problem_of(upstream(grpc.StatusCode.NOT_FOUND, reason), route)

    assert (refusal.status, [error.pointer for error in refusal.errors]) == (
        404,
        [] if pointer is None else [pointer],
    )


def test_errors_of_identity_are_told_alike_over_http() -> None:
    assert http_problem_of(TooManyTokens(20_000)).code == "TOO_MANY_TOKENS"
    assert http_problem_of(DatabaseUnavailable("refused")).status == 503


def test_every_refusal_about_identity_is_in_the_table() -> None:
    assert {kind for kind in IdentityError.__subclasses__() if kind not in ERRORS} == set()


def test_pointers_escape_what_json_pointer_reserves() -> None:
    assert pointer_of("a~b.c[2]") == "/a~0b/c/2"


def asked(path: str = "", *query: str, body: type | None = None) -> RouteInputs:
    return RouteInputs(path, query, body)


@pytest.mark.parametrize(
    ("field", "route", "place"),
    [
        ("content[0].text", asked(body=NEW_CHAT), {"pointer": "/content/0/text"}),
        ("content[0].file.file_id", asked(body=NEW_MESSAGE), {"pointer": "/content/0/file_id"}),
        (
            "content[2].file_reference.start_line",
            asked(body=NEW_MESSAGE),
            {"pointer": "/content/2/start_line"},
        ),
        (
            "client_tools[1].input_schema_json",
            asked(body=NEW_CHAT),
            {"pointer": "/client_tools/1/input_schema"},
        ),
        ("chat.title", asked(body=CHAT_PATCH), {"pointer": "/title"}),
        (
            "chat.fallback_model_id",
            asked(body=CHAT_PATCH),
            {"pointer": "/fallback_model_id"},
        ),
        ("labels.a/b.c", asked(body=NEW_CHAT), {"pointer": "/labels/a~1b.c"}),
        ("model.prices.input", asked(body=NEW_MODEL), {"pointer": "/prices/input"}),
        ("user.role", asked(body=USER_PATCH), {"pointer": "/role"}),
        ("limit.limit_micros", asked(body=NEW_SPEND_LIMIT), {"pointer": "/limit_micros"}),
        ("secret.hosts", asked(body=NEW_SECRET), {"pointer": "/hosts"}),
        ("template.git.url", asked(body=NEW_TEMPLATE), {"pointer": "/git/url"}),
        (
            "template.parameters[1].options",
            asked(body=NEW_TEMPLATE),
            {"pointer": "/parameters/1/options"},
        ),
        ("parameters.cpus", asked(body=NEW_WORKSPACE), {"pointer": "/parameters/cpus"}),
        ("spec.command", asked(body=NEW_PROCESS), {"pointer": "/command"}),
        ("spec.argv.arguments", asked(body=NEW_PROCESS), {"pointer": "/argv"}),
        ("spec.environment['A=B']", asked(body=NEW_PROCESS), {"pointer": "/environment/A=B"}),
        ("spec.program", asked(body=NEW_PROCESS), {"pointer": ""}),
        ("paths", asked(body=RESTORED), {"pointer": "/paths"}),
        ("paths", asked("/diff", "paths"), {"parameter": "paths"}),
        ("repository", asked("/diff", "repository"), {"parameter": "repository"}),
        ("repository", asked(body=RESTORED), {"pointer": "/repository"}),
        ("query", asked("/chats", "q"), {"parameter": "q"}),
        ("query", asked("/templates", "query"), {"parameter": "query"}),
        ("page_token", asked("/chats", "cursor"), {"parameter": "cursor"}),
        ("page_size", asked("/chats", "limit"), {"parameter": "limit"}),
        ("since_cursor", asked("/output", "cursor"), {"parameter": "cursor"}),
        ("chat_id", asked("/chats/{chat_id}/pin", body=CHAT_PATCH), {"parameter": "chat_id"}),
        ("request_id", asked(body=NEW_CHAT), {"parameter": "Idempotency-Key"}),
        ("chat.etag", asked(body=CHAT_PATCH), {"parameter": "If-Match"}),
    ],
)
def test_a_field_of_a_proto_is_told_as_what_the_client_wrote(
    field: str, route: RouteInputs, place: dict[str, str]
) -> None:
    problem = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        f"{field}: is wrong",
        violations=(Violation(field, "is wrong"),),
    )

    refusal = http_problem_of(UpstreamProblem(problem), route)

    (error,) = refusal.errors
    assert error.document() == {**place, "code": "INVALID", "detail": "It is wrong."}
    where = next(iter(place.values())) or "The body"
    assert refusal.detail == f"{where}: It is wrong."


def test_ids_that_name_nothing_are_told_by_their_places_and_with_their_reason() -> None:
    problem = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "UNKNOWN_ID",
        "chat.mcp_server_ids[1]: names no server",
        {"resource": "MCP server"},
        violations=(Violation("chat.mcp_server_ids[1]", "names no server"),),
    )

    refusal = http_problem_of(UpstreamProblem(problem), asked(body=CHAT_PATCH))

    assert (refusal.status, refusal.code, refusal.facts) == (
        422,
        "UNKNOWN_ID",
        {"resource": "MCP server"},
    )
    assert refusal.detail == "/mcp_server_ids/1: It names no server."


def test_a_spending_limit_is_told_with_its_end_and_numbers_as_numbers() -> None:
    problem = Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "USAGE_LIMIT",
        "The limit is reached.",
        {"spent_micros": "900", "limit_micros": "500", "resets_at": "2026-02-01T00:00:00Z"},
        retry_after_s=3600.2,
    )

    answer = answer_to(UpstreamProblem(problem), HERE)

    assert (answer.status, answer.headers) == (429, {"retry-after": "3601"})
    assert answer.document == {
        "type": "https://parley.test/problems/USAGE_LIMIT",
        "title": "Usage limit",
        "status": 429,
        "detail": "The limit is reached.",
        "instance": "/api/v1/chats",
        "code": "USAGE_LIMIT",
        "request_id": "request-1",
        "trace_id": "f" * 32,
        "retryable": True,
        "retry_after_ms": 3_600_200,
        "spent_micros": 900,
        "limit_micros": 500,
        "resets_at": "2026-02-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("reason", "metadata", "facts"),
    [
        ("QUEUE_FULL", {"queue_length_max": "20"}, {"queue_length_max": 20}),
        ("TOO_MANY_FILES", {"files_max": "50"}, {"files_max": 50}),
        ("OUTPUT_GONE", {"oldest_cursor": "4096"}, {"oldest_cursor": 4096}),
        ("TOO_MANY_PROCESSES", {"scope": "chat", "limit": "64"}, {"scope": "chat", "limit": 64}),
        (
            "QUOTA_EXHAUSTED",
            {"dimension": "live_workspaces", "used": "5", "limit": "5", "remedy": "stop one"},
            {"dimension": "live_workspaces", "used": 5, "limit": 5, "remedy": "stop one"},
        ),
        (
            "PATH_NOT_FOUND",
            {"path": "7", "suggestions": "a.py\nb.py"},
            {"path": "7", "suggestions": ["a.py", "b.py"]},
        ),
        ("TOO_MANY_GROUPS", {"groups_max": "100"}, {"groups_max": 100}),
        ("TOO_MANY_TOKENS", {"tokens_max": "20000"}, {"tokens_max": 20000}),
        (
            "FILE_TOO_LARGE",
            {"size_bytes": "11", "limit_bytes": "10"},
            {"size_bytes": 11, "limit_bytes": 10},
        ),
    ],
)
def test_facts_that_are_numbers_or_lists_are_told_as_such(
    reason: str, metadata: dict[str, str], facts: dict[str, object]
) -> None:
    problem = Problem(grpc.StatusCode.FAILED_PRECONDITION, reason, "said", metadata)

    assert http_problem_of(UpstreamProblem(problem)).facts == facts


@pytest.mark.parametrize(
    ("code", "title"),
    [("INVALID_JSON", "Invalid JSON"), ("INVALID_API_KEY", "Invalid API key")],
)
def test_titles_write_abbreviations_in_capitals(code: str, title: str) -> None:
    assert _title(code) == title


def test_a_reused_key_is_told_by_the_name_of_its_header() -> None:
    problem = Problem(
        grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", "The request id was used before."
    )

    assert "Idempotency-Key" in http_problem_of(UpstreamProblem(problem)).detail


def test_pages_of_problems_show_code_as_code() -> None:
    pages = [index_body(), *map(problem_body, ERROR_SPECS.values())]

    assert not [page for page in pages if "`" in page]


def test_the_page_of_a_problem_names_the_command_that_helps() -> None:
    page = problem_body(ERROR_SPECS["MODEL_NOT_FOUND"])

    assert "GET /api/v1/models" in page
    assert "On the command line: <code>parley models ls</code>" in page
    assert "command line" not in problem_body(ERROR_SPECS["FILE_TOO_LARGE"])
