"""Problem documents (RFC 9457), with which all errors are answered.

Statuses, generic texts and shown metadata are those that the protos declare for a reason. Texts of
unexpected errors, and of the transport between services, are not returned.

    HttpProblem              a request that the gateway itself rejected
    UpstreamProblem          a call that another service refused
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc

from gateway.http.problems.field_paths import ANYTHING, RouteInputs, location_of
from gateway.identity.problems import ERRORS
from parley.contract.errors import ErrorSpec, error_spec, received_spec
from parley.rpc import Problem, Violation

FILE_TOO_LARGE = "FILE_TOO_LARGE"
WORKSPACE_NOT_READY = "WORKSPACE_NOT_READY"
PROBLEM_MEDIA_TYPE = "application/problem+json"

#: Words of titles that are written in upper case.
ABBREVIATIONS: Mapping[str, str] = {
    word.lower(): word for word in ("API", "HTTP", "ID", "JSON", "MCP", "URL")
}
#: Metadata whose names have another meaning in a problem document.
FACT_NAMES: Mapping[str, str] = {"status": "chat_status"}
#: Metadata that are numbers, and metadata that are lists with an item per line.
NUMBERS = frozenset(
    {
        "api_keys_max",
        "files_max",
        "groups_max",
        "limit",
        "limit_bytes",
        "limit_micros",
        "oldest_cursor",
        "passkeys_max",
        "queue_length_max",
        "size_bytes",
        "spent_micros",
        "tokens_max",
        "used",
    }
)
LISTS = frozenset({"suggestions"})
#: Quota dimensions for which a node's text for models names a command to remove files.
WORKSPACE_DIMENSIONS = frozenset({"disk_bytes", "inodes"})
#: The next step for a user, by the state of a workspace; models get the name of a tool.
WORKSPACE_STEPS: Mapping[str, str] = {
    "pending": "Wait until it is ready.",
    "preparing": "Wait until it is ready.",
    "ready": "Stop it with POST /api/v1/workspaces/{workspace_id}/stop first.",
    "busy": "Stop it with POST /api/v1/workspaces/{workspace_id}/stop first.",
    "stopping": "Wait until it has stopped, then start it.",
    "stopped": "Start it with POST /api/v1/workspaces/{workspace_id}/start.",
    "failed": "Start it with POST /api/v1/workspaces/{workspace_id}/start.",
    "removing": "Create another one.",
    "deleted": "Create another one.",
}
#: First words of the descriptions of field violations.
PREDICATES = frozenset(
    (
        "are",
        "begins",
        "belongs",
        "describes",
        "binds",
        "can",
        "cannot",
        "comes",
        "contains",
        "does",
        "exists",
        "has",
        "holds",
        "is",
        "leads",
        "may",
        "must",
        "names",
        "needs",
        "refers",
    )
)
#: The most errors in the detail; all of them are in `errors`.
ERRORS_IN_DETAIL_MAX = 3
RETRY_AFTER_S_DEFAULT = 1.0


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid part of a request.

    Attributes:
        code: The kind of error, in upper case.
        detail: What is wrong and what is expected.
        pointer: Its location in the body, as a JSON Pointer.
        parameter: The query parameter or header.
    """

    code: str
    detail: str
    pointer: str | None = None
    parameter: str | None = None

    @property
    def place(self) -> str:
        """Its location, as the beginning of a sentence."""
        return (self.pointer if self.parameter is None else self.parameter) or "The body"

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        named = {"pointer": self.pointer, "parameter": self.parameter}
        shown: dict[str, object] = {name: at for name, at in named.items() if at is not None}
        return shown | {"code": self.code, "detail": self.detail}


class HttpProblem(Exception):
    """An error that the gateway returns as a problem document.

    Attributes:
        status: The HTTP status.
        code: The kind of problem, in upper case; clients switch on it.
        detail: Text that is safe to show and contains the next step.
        errors: The invalid parts of the request.
        headers: Headers of the response.
        facts: Further members of the document.
        is_retryable: Whether the same request may succeed later.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        headers: Mapping[str, str] | None = None,
        facts: Mapping[str, object] | None = None,
        retry_after_s: float | None = None,
        is_retryable: bool | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})
        self.facts = dict(facts or {})
        self.retry_after_s = retry_after_s
        declared = error_spec(code).is_retryable if is_retryable is None else is_retryable
        self.is_retryable = declared

    @classmethod
    def of(
        cls,
        code: str,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        headers: Mapping[str, str] | None = None,
        facts: Mapping[str, object] | None = None,
        retry_after_s: float | None = None,
    ) -> "HttpProblem":
        """Return the problem of a code, with the HTTP status that the protos declare for it."""
        return cls(
            error_spec(code).http_status,
            code,
            detail,
            errors=errors,
            headers=headers,
            facts=facts,
            retry_after_s=retry_after_s,
        )


class UpstreamProblem(Exception):
    """A call to another service that failed.

    Attributes:
        problem: The error of that service, or of the transport.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.status.name} {problem.reason}: {problem.message}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class ProblemContext:
    """The fields of a problem document that describe the request."""

    public_url: str
    path: str
    request_id: str
    trace_id: str
    asked: RouteInputs = ANYTHING


@dataclass(frozen=True, slots=True)
class Answer:
    """A problem as response: status, headers and document."""

    status: int
    headers: Mapping[str, str]
    document: Mapping[str, object] = field(repr=False)


def answer_to(error: Exception, at: ProblemContext) -> Answer:
    """Return the response for a request that ended with `error`."""
    refusal = http_problem_of(error, at.asked)
    retry_after_s = refusal.retry_after_s
    if retry_after_s is None and refusal.status in (429, 503):
        retry_after_s = RETRY_AFTER_S_DEFAULT
    headers = dict(refusal.headers)
    document: dict[str, object] = {
        **type_and_title(refusal.code, at.public_url),
        "status": refusal.status,
        "detail": refusal.detail,
        "instance": at.path,
        "code": refusal.code,
        "request_id": at.request_id,
        "trace_id": at.trace_id,
        "retryable": refusal.is_retryable,
    }
    if retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(retry_after_s)))
        document["retry_after_ms"] = round(retry_after_s * 1000)
    if refusal.errors:
        document["errors"] = [each.document() for each in refusal.errors]
    return Answer(refusal.status, headers, {**refusal.facts, **document})


def http_problem_of(error: Exception, asked: RouteInputs = ANYTHING) -> HttpProblem:
    """Convert `error` to an HttpProblem; an unexpected one reveals no details."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, UpstreamProblem):
        return _http_problem_of(error.problem, asked)
    for kind in type(error).__mro__:
        if kind in ERRORS:
            return _http_problem_of(ERRORS[kind](error), asked)
    return _internal()


def is_internal(error: Exception) -> bool:
    """Return whether `error` is to be logged with its traceback for operators."""
    return http_problem_of(error).status in (500, 501)


def type_and_title(code: str, public_url: str) -> dict[str, object]:
    """Return the first members of a document; the type is the address of the page of the code."""
    return {"type": f"{public_url}/problems/{code}", "title": _title(code)}


def _title(code: str) -> str:
    words = code.replace("_", " ").capitalize().split(" ")
    return " ".join(ABBREVIATIONS.get(word.lower(), word) for word in words)


def invalid_request(*errors: FieldError) -> HttpProblem:
    """Return the error of an invalid request with all its field errors."""
    return HttpProblem.of("INVALID_REQUEST", _told(errors), errors=errors)


def _told(errors: tuple[FieldError, ...]) -> str:
    listed = " ".join(f"{each.place}: {each.detail}" for each in errors[:ERRORS_IN_DETAIL_MAX])
    more = len(errors) - ERRORS_IN_DETAIL_MAX
    return f"{listed} And {more} more, see errors." if more > 0 else listed


def _internal() -> HttpProblem:
    return HttpProblem.of("INTERNAL", error_spec("INTERNAL").text)


def _http_problem_of(problem: Problem, asked: RouteInputs) -> HttpProblem:
    spec = received_spec(problem.reason.removeprefix("ERROR_REASON_"), problem.status)
    # The client's credential was valid; that the gateway's was refused is not the client's fault.
    is_ours = problem.status is grpc.StatusCode.UNAUTHENTICATED
    if is_ours or spec.http_status == 500:
        return _internal()
    errors = tuple(_field_error(violation, asked) for violation in problem.violations)
    detail = _told(errors) if errors else _detail(problem, spec)
    return HttpProblem(
        spec.http_status,
        spec.reason,
        detail,
        errors=errors or _missing(spec, detail, asked),
        facts={
            FACT_NAMES.get(name, name): _fact(name, problem.metadata[name])
            for name in spec.public_metadata
            if name in problem.metadata
        },
        retry_after_s=problem.retry_after_s,
        is_retryable=spec.is_retryable,
    )


def _missing(spec: ErrorSpec, detail: str, asked: RouteInputs) -> tuple[FieldError, ...]:
    """Return the location in the body that named a missing resource."""
    place = location_of(spec.body_field, asked) if spec.body_field else None
    if place is None or not place.pointer:
        return ()
    return (FieldError("INVALID", detail, pointer=place.pointer),)


def _detail(problem: Problem, spec: ErrorSpec) -> str:
    """Return a text for users; texts of grpc, and those for models or services, are replaced."""
    state = problem.metadata.get("state", "")
    if spec.reason == WORKSPACE_NOT_READY and state in WORKSPACE_STEPS:
        return f"The workspace is {state}. {WORKSPACE_STEPS[state]}"
    if spec.reason == FILE_TOO_LARGE and "size_bytes" in problem.metadata:
        size, limit = problem.metadata["size_bytes"], problem.metadata.get("limit_bytes", "")
        return f"The file has {size} bytes, and at most {limit} are allowed."
    is_of_workspace = problem.metadata.get("dimension") in WORKSPACE_DIMENSIONS
    if spec.has_generic_text or is_of_workspace or not problem.message:
        return spec.text
    return _whole_sentence(problem.message)


def _fact(name: str, text: str) -> object:
    """Convert a metadata value to JSON: between services all values are texts."""
    if name in NUMBERS and text.removeprefix("-").isdecimal():
        return int(text)
    return text.splitlines() if name in LISTS else text


def _field_error(violation: Violation, asked: RouteInputs) -> FieldError:
    """Convert the violation of a proto field to an error of the HTTP request."""
    place = location_of(violation.field, asked)
    detail = _sentence(violation.description)
    return FieldError("INVALID", detail, pointer=place.pointer, parameter=place.parameter)


def violated_rule(description: str, pointer: str) -> FieldError:
    """Return the error for a rule of a field, in the words in which services report it."""
    return FieldError("INVALID", _sentence(description), pointer=pointer)


def _sentence(phrase: str) -> str:
    """Convert "is blank" to "It is blank."; other phrases are kept."""
    if phrase.partition(" ")[0] in PREDICATES:
        return _whole_sentence(f"It {phrase}")
    return _whole_sentence(phrase)


def _whole_sentence(phrase: str) -> str:
    whole = phrase if phrase.endswith((".", "?")) else f"{phrase}."
    return whole[:1].upper() + whole[1:]
