"""Writes the OpenAPI 3.1 document of the HTTP API, or checks that it is up to date.

Everything in it comes from the protos: routes, parameters, bodies, responses, events and problems
from their options, descriptions from their comments.

Usage:
    openapi.py [--check]
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openapi_bodies import Bodies
from openapi_comments import comments
from openapi_operations import HEADER_PARAMETERS, HEADERS, Operations
from openapi_problems import problem_responses, problem_schemas
from openapi_schemas import Schema, Schemas

from gateway.api.contract import bindings
from parley.contract.bindings import HttpBinding

ROOT = Path(__file__).resolve().parent.parent
#: A change that breaks clients needs another one, see openapi_breaking.py.
VERSION = "1.0.0"
LINE_LENGTH = 120
DOCUMENT = ROOT / "services" / "gateway" / "api" / "openapi.json"


def main() -> int:
    """Write the document, or compare it with the committed one."""
    text = "\n".join(_lines(document(), "")) + "\n"
    if "--check" in sys.argv[1:]:
        if DOCUMENT.exists() and DOCUMENT.read_text() == text:
            return 0
        print(f"{DOCUMENT.name} is stale; run scripts/openapi.py", file=sys.stderr)
        return 1
    DOCUMENT.write_text(text)
    return 0


def document() -> Schema:
    """Return the document."""
    schemas = Schemas(comments())
    declared = bindings()
    bodies = Bodies(declared, schemas)
    operations = Operations(schemas, bodies)
    paths: dict[str, dict[str, Schema]] = {}
    for binding in declared:
        paths.setdefault(binding.path, {})[binding.verb.lower()] = operations.of(binding)
    described = {**bodies.components, **schemas.components, **problem_schemas()}
    components: dict[str, Schema] = {
        "schemas": described,
        "parameters": dict(HEADER_PARAMETERS),
        "headers": dict(HEADERS),
        "responses": problem_responses(),
        "examples": operations.examples,
    }
    for kind, found in components.items():
        references = _references({"paths": paths, **components}, f"#/components/{kind}/")
        components[kind] = {name: found[name] for name in sorted(found) if name in references}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Parley",
            "version": VERSION,
            "summary": "Agent chats that are durable, streamed and priced.",
            "description": "Errors are problem documents (RFC 9457). Streams are server-sent "
            "events. `x-roles` and `x-scope` are the roles of users and the scope of service "
            "tokens that an operation needs, or `any`; `x-grpc-method` is the call that it stands "
            "for.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}, {"session": []}],
        "tags": _tags(declared, schemas),
        "paths": paths,
        "components": {
            **components,
            "securitySchemes": {
                "api_key": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "parley_session"},
            },
        },
    }


def _lines(value: Any, indent: str) -> Iterator[str]:
    """Yield a value as lines of JSON, what fits into one in one."""
    whole = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(whole) <= LINE_LENGTH or not isinstance(value, (dict, list)):
        yield f"{indent}{whole}"
        return
    opening, closing = "[]" if isinstance(value, list) else "{}"
    yield f"{indent}{opening}"
    members: list[tuple[str, Any]] = (
        [("", each) for each in value]
        if isinstance(value, list)
        else [(f"{json.dumps(name)}: ", each) for name, each in value.items()]
    )
    for position, (name, each) in enumerate(members, 1):
        first, *rest = _lines(each, f"{indent} ")
        lines = [f"{indent} {name}{first.lstrip()}", *rest]
        yield from lines[:-1]
        yield f"{lines[-1]}," if position < len(members) else lines[-1]
    yield f"{indent}{closing}"


def _references(value: object, prefix: str) -> set[str]:
    """Return the names of the components of one kind that a document refers to."""
    if isinstance(value, dict):
        target = value.get("$ref", "")
        found = {target.removeprefix(prefix)} if target.startswith(prefix) else set()
        return found.union(*(_references(each, prefix) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(_references(each, prefix) for each in value))
    return set()


def _tags(declared: tuple[HttpBinding, ...], schemas: Schemas) -> list[Schema]:
    services = dict.fromkeys(each.method.containing_service for each in declared)
    return [
        {
            "name": each.name.removesuffix("Service"),
            "description": schemas.comment(each.full_name),
        }
        for each in services
    ]


if __name__ == "__main__":
    raise SystemExit(main())
