"""The OpenAPI 3.1 document of the API, generated from the routes and their body types.

It contains paths, parameters, bodies, roles and scopes. The format of responses is defined in
`gateway.api.convert.chats` and its neighbours, not here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.api.contract import access_table
from gateway.http.application import AnyRoute, UserRoute
from gateway.http.problems.errors import PROBLEM_MEDIA_TYPE
from gateway.http.route_access import Access

OPENAPI_VERSION = "3.1.1"
API_VERSION = "1"
#: Schemas of parameters that are not plain text.
SCHEMAS: Mapping[str, Mapping[str, object]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 200},
    "before_id": {"type": "integer", "minimum": 0},
    "after_id": {"type": "integer", "minimum": 0},
    "archived": {"type": "boolean", "default": False},
    "shared_with_me": {"type": "boolean", "default": False},
    "include_ended": {"type": "boolean", "default": False},
    "start": {"type": "string", "format": "date-time"},
    "end": {"type": "string", "format": "date-time"},
    "for_agents": {"type": "boolean", "default": False},
    "force": {"type": "boolean", "default": False},
    "state": {"type": "array", "items": {"type": "string"}},
    "include_ignored": {"type": "boolean", "default": False},
    "wait": {"type": "integer", "minimum": 0, "maximum": 300, "description": "Seconds."},
    "until": {"enum": ["exit", "output", "match", "snapshot"]},
    "depth": {"type": "integer", "minimum": 1, "maximum": 8},
    "max_bytes": {"type": "integer", "minimum": 1},
    "paths": {"type": "array", "items": {"type": "string"}},
    "label": {"type": "array", "items": {"type": "string"}},
}
TEXT: Mapping[str, object] = {"type": "string"}
CONDITION = "The ETag of what was read; 412 if it has another one by now."
PROBLEM: Mapping[str, object] = {
    "type": "object",
    "description": "A problem document of RFC 9457; programs switch on its code.",
    "required": ["type", "title", "status", "detail", "instance", "code", "retryable"],
    "properties": {
        "type": {"type": "string", "description": "The address of a page that says what to do."},
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": TEXT,
        "instance": TEXT,
        "code": TEXT,
        "request_id": TEXT,
        "trace_id": TEXT,
        "retryable": {"type": "boolean"},
        "retry_after_ms": {"type": "integer"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["code", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "JSON Pointer into the body."},
                    "parameter": {
                        "type": "string",
                        "description": "Name in the query, the path or the headers.",
                    },
                    "code": TEXT,
                    "detail": TEXT,
                },
            },
        },
    },
}
KEYED = frozenset({"POST", "PUT", "PATCH", "DELETE"})

_PARAMETER = re.compile(r"\{(\w+)\}")


def described(routes: Iterable[AnyRoute]) -> dict[str, object]:
    """Return the document of the routes that require a sign-in."""
    served = [route for route in routes if isinstance(route, UserRoute)]
    bodies = list(dict.fromkeys(route.body for route in served if route.body is not None))
    refs, schemas = msgspec.json.schema_components(
        bodies, ref_template="#/components/schemas/{name}"
    )
    ref_of = dict(zip(bodies, refs, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for route in served:
        body = None if route.body is None else ref_of[route.body]
        operation = _operation(route, access_table()[route.method, route.path], body)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Parley",
            "version": API_VERSION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}],
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Problem": PROBLEM},
            "securitySchemes": {"api_key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: UserRoute, access: Access, body: Any) -> dict[str, object]:
    described: dict[str, object] = {
        "operationId": f"{route.method.lower()}{_words(route.path)}",
        "summary": access.doc,
        "x-roles": sorted(access.roles),
        "x-scope": access.scope,
        "parameters": [*_parameters(route)],
        "responses": {
            "2XX": {"description": "It is done, or taken."},
            "default": {
                "description": "A problem.",
                "content": {
                    PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}
                },
            },
        },
    }
    if body is not None:
        is_optional = not _required(route.body)
        described["requestBody"] = {
            "required": not is_optional,
            "content": {"application/json": {"schema": body}},
        }
    if route.uploads:
        # In OpenAPI 3.1, binary content has no schema.
        content: dict[str, object] = {media_type: {} for media_type in route.uploads}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(route: UserRoute) -> Iterable[dict[str, object]]:
    for name in _PARAMETER.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": TEXT}
    for name in route.query:
        yield {"name": name, "in": "query", "schema": SCHEMAS.get(name, TEXT)}
    if route.method in KEYED:
        yield {"name": "Idempotency-Key", "in": "header", "schema": TEXT}
    if route.conditional:
        yield {"name": "If-Match", "in": "header", "schema": TEXT, "description": CONDITION}


def _required(body: type[msgspec.Struct] | None) -> bool:
    """Return whether a request of this type requires a body."""
    if body is None:
        return False
    fields = msgspec.structs.fields(body)
    return any(field.required or field.default is msgspec.UNSET for field in fields)


def _words(path: str) -> str:
    steps = path.removeprefix("/api/v1").replace("{", "").replace("}", "")
    return "".join(word.capitalize() for word in re.split(r"[/_-]", steps) if word)
