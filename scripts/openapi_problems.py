"""The problems of operations: the schema of problem documents, and a response for each status."""

from collections.abc import Mapping
from typing import Any

from openapi_schemas import REFERENCE, Schema

from gateway.api.transcoded_route import REQUEST_ID
from gateway.http.problems.errors import PROBLEM_MEDIA_TYPE
from parley.contract.bindings import HttpBinding
from parley.contract.errors import ERROR_SPECS, FIELD_CODES

TEXT: Schema = {"type": "string"}
#: Status -> name and description of its response.
RESPONSES: Mapping[str, tuple[str, str]] = {
    "400": ("BadRequest", "The body or a header is malformed."),
    "401": ("Unauthenticated", "The credential is missing or not valid."),
    "403": ("Forbidden", "The role of the user or the scope of the token does not allow it."),
    "404": ("NotFound", "It does not exist, or the caller may not see it."),
    "409": ("Conflict", "The present state does not allow it."),
    "412": ("PreconditionFailed", "It was changed since the version of If-Match."),
    "413": ("TooLarge", "The body is too large."),
    "415": ("UnsupportedMediaType", "The Content-Type of the body is not accepted."),
    "416": ("RangeNotSatisfiable", "The range is not inside the file."),
    "422": ("Invalid", "Parts of the request are not valid; `errors` lists them."),
    "429": ("TooManyRequests", "A limit of requests, streams or spend is reached."),
    "503": ("Unavailable", "A service is stopping, busy or does not respond."),
    "default": ("Problem", "Another problem."),
}
RETRIED = frozenset({"429", "503"})
ALWAYS = ("401", "403", "422", "429", "503", "default")
RETRY_AFTER: Schema = {
    "description": "Seconds to wait before the next attempt.",
    "schema": {"type": "integer", "minimum": 1},
}


def problems_of(binding: HttpBinding) -> dict[str, Schema]:
    """Return the problem responses of a binding, by status."""
    found = {*ALWAYS}
    if binding.variables:
        found.add("404")
    if binding.verb != "GET":
        found.add("409")
    if binding.options.if_match_field:
        found.add("412")
    if binding.body or REQUEST_ID in binding.method.input_type.fields_by_name:
        found.add("400")
    if binding.body:
        found |= {"413", "415"}
    if binding.method.client_streaming:
        found |= {"400", "413", "415"}
    return {
        status: {"$ref": f"#/components/responses/{name}"}
        for status, (name, _) in RESPONSES.items()
        if status in found
    }


def problem_responses() -> dict[str, Schema]:
    """Return the responses, by name."""
    return {name: _response(status, text) for status, (name, text) in RESPONSES.items()}


def _response(status: str, text: str) -> Schema:
    content = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format("Problem")}}}
    codes = sorted(
        name
        for name, spec in ERROR_SPECS.items()
        if status in (str(spec.http_status), str(spec.if_match_http_status))
    )
    listed = f" Codes: {', '.join(codes)}." if codes else ""
    response: Schema = {"description": f"{text}{listed}", "content": content}
    if status in RETRIED:
        names = ("Retry-After", *(("RateLimit-Policy", "RateLimit") if status == "429" else ()))
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return response


def problem_schemas() -> dict[str, Schema]:
    """Return the schemas of problem documents, by name."""
    properties: dict[str, Any] = {
        "type": {
            "type": "string",
            "format": "uri",
            "description": "Address of a page that says what to do.",
        },
        "title": TEXT,
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What happened, in words for users."},
        "instance": {"type": "string", "description": "The path of the request."},
        "code": {"$ref": REFERENCE.format("ProblemCode")},
        "request_id": TEXT,
        "trace_id": TEXT,
        "retryable": {
            "type": "boolean",
            "description": "Whether the same request may succeed later.",
        },
        "retry_after_ms": {"type": "integer", "description": "Milliseconds to wait before that."},
        "errors": {"type": "array", "items": {"$ref": REFERENCE.format("FieldError")}},
    }
    return {
        "Problem": {
            "type": "object",
            "description": "A problem document of RFC 9457. Some codes have further members.",
            "required": ["type", "title", "status", "detail", "instance", "code", "retryable"],
            "properties": properties,
        },
        "ProblemCode": {
            "type": "string",
            "description": "The kind of problem; programs switch on it. A newer server may have "
            "further codes.",
            "enum": sorted(name for name, spec in ERROR_SPECS.items() if spec.http_status),
        },
        "FieldErrorCode": {
            "type": "string",
            "description": " ".join(f"`{name}`: {text}" for name, text in FIELD_CODES.items()),
            "enum": [*FIELD_CODES],
        },
        "FieldError": {
            "type": "object",
            "description": "One invalid part of a request.",
            "required": ["code", "detail"],
            "properties": {
                "pointer": {"type": "string", "description": "JSON Pointer into the body."},
                "parameter": {
                    "type": "string",
                    "description": "Name in the query, the path or the headers.",
                },
                "code": {"$ref": REFERENCE.format("FieldErrorCode")},
                "detail": {"type": "string", "description": "What is wrong and what is expected."},
            },
        },
    }
