"""Writes the OpenAPI 3.1 document of the HTTP API, or checks that it is up to date.

Everything in it comes from the protos: routes, parameters, bodies, responses, events and problems
from their options, descriptions from their comments.

Usage:
    openapi.py [--check]
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from generate_protos import PROTOS, run_protoc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from openapi_examples import example_of
from openapi_schemas import Schema, Schemas

from gateway.api.contract import AUDIENCES, bindings
from gateway.api.transcoded_route import REQUEST_ID, body_type_of, query_of
from parley.api.chat.v1 import event_pb2
from parley.contract.bindings import HttpBinding, PathVariable, field_path
from parley.contract.json_fields import enum_words, json_field
from parley.identity import rule_of

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "services" / "gateway" / "api" / "openapi.json"
PROBLEM_MEDIA_TYPE = "application/problem+json"
EVENT_STREAM = "text/event-stream"
IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "1 to 128 printable characters; a repetition returns the first outcome.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
}
IF_MATCH: Schema = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of what was read; 412 if it has another one by now.",
    "schema": {"type": "string"},
}
IF_NONE_MATCH: Schema = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of what is known; 304 if that is still the newest.",
    "schema": {"type": "string"},
}


def main() -> int:
    """Write the document, or compare it with the committed one."""
    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
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
    bodies = _bodies(declared, schemas)
    paths: dict[str, dict[str, Schema]] = {}
    for binding in declared:
        operation = _operation(binding, schemas, bodies)
        paths.setdefault(binding.path, {})[binding.verb.lower()] = operation
    components = {**schemas.components, **bodies.components, "Problem": _problem()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Parley",
            "version": "1",
            "summary": "Agent chats that are durable, streamed and priced.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}, {"session": []}],
        "tags": _tags(declared, schemas),
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "api_key": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "parley_session"},
            },
        },
    }


class _Bodies:
    """The schemas of request bodies."""

    def __init__(
        self,
        types: Mapping[str, type],
        references: Mapping[str, Schema],
        components: dict[str, Schema],
    ) -> None:
        self._references = references
        self.types = types
        self.components = components

    def of(self, binding: HttpBinding) -> Schema | None:
        """Return the schema of a binding's body; None without a body."""
        return self._references.get(binding.operation_id)


def _bodies(declared: tuple[HttpBinding, ...], schemas: Schemas) -> _Bodies:
    types = {
        each.operation_id: found.type
        for each in declared
        if not each.options.served_by_gateway and (found := body_type_of(each)) is not None
    }
    references, components = msgspec.json.schema_components(
        types.values(), ref_template="#/components/schemas/{name}"
    )
    described = {name: _described(each, schemas) for name, each in components.items()}
    return _Bodies(types, dict(zip(types, references, strict=True)), described)


def _described(schema: Schema, schemas: Schemas) -> Schema:
    """Return a body's schema without what msgspec adds for Python."""
    return {key: value for key, value in schema.items() if key != "title"}


def _operation(binding: HttpBinding, schemas: Schemas, bodies: _Bodies) -> Schema:
    options = binding.options
    rule = rule_of(binding.call_path)
    operation: Schema = {
        "operationId": binding.operation_id,
        "summary": options.summary,
        "tags": [binding.method.containing_service.name.removesuffix("Service")],
        "x-roles": sorted(AUDIENCES[options.audience]),
        "x-scope": None if rule is None else rule.scope,
        "x-grpc-method": binding.call_path.removeprefix("/"),
        "parameters": [*_parameters(binding, schemas)],
        "responses": {**_success(binding, schemas), "default": _problem_response()},
    }
    comment = schemas.comment(binding.method.full_name)
    if comment:
        operation["description"] = comment
    body = bodies.of(binding)
    if body is not None:
        media_type = (
            "application/merge-patch+json" if binding.verb == "PATCH" else "application/json"
        )
        content = {"schema": body, "example": example_of(body, bodies.components)}
        operation["requestBody"] = {
            "required": not options.body_optional,
            "content": {media_type: content},
        }
        if binding.verb == "PATCH":
            operation["requestBody"]["content"]["application/json"] = content
    return operation


def _parameters(binding: HttpBinding, schemas: Schemas) -> Iterator[Schema]:
    for variable in binding.variables:
        yield _path_parameter(variable, schemas)
    if binding.options.served_by_gateway:
        for name in binding.options.query:
            yield {"name": name, "in": "query", "schema": {"type": "string"}}
    else:
        for name, parameter in query_of(binding).items():
            yield _query_parameter(name, parameter.field, schemas)
    if REQUEST_ID in binding.method.input_type.fields_by_name:
        yield IDEMPOTENCY_KEY
    if binding.options.if_match_field:
        yield IF_MATCH
    elif binding.verb == "GET" and (binding.options.etag_of_content or binding.options.etag_field):
        yield IF_NONE_MATCH


def _path_parameter(variable: PathVariable, schemas: Schemas) -> Schema:
    field = variable.fields[-1]
    declared = json_field(field)
    schema: Schema = {"type": "string"}
    if field.enum_type is not None:
        schema["enum"] = [*enum_words(field.enum_type).values()]
    elif field.cpp_type == FieldDescriptor.CPPTYPE_INT64:
        schema = {"type": "integer", "minimum": 1}
    elif declared is not None and declared.rules.is_uuid:
        schema["format"] = "uuid"
    found: Schema = {"name": variable.name, "in": "path", "required": True, "schema": schema}
    comment = schemas.comment(field.full_name)
    return {**found, "description": comment} if comment else found


def _query_parameter(name: str, descriptor: FieldDescriptor, schemas: Schemas) -> Schema:
    field = json_field(descriptor)
    assert field is not None
    schema = {key: value for key, value in schemas.field(field).items() if key != "description"}
    if field.is_map:
        schema = {"type": "array", "items": {"type": "string", "examples": ["key:value"]}}
    for key, bound in (("minimum", field.rules.least), ("maximum", field.rules.most)):
        if bound is not None:
            schema[key] = bound
    if field.rules.length_max is not None and schema.get("type") == "string":
        schema["maxLength"] = field.rules.length_max
    found: Schema = {"name": name, "in": "query", "schema": schema}
    comment = schemas.comment(descriptor.full_name)
    return {**found, "description": comment} if comment else found


def _success(binding: HttpBinding, schemas: Schemas) -> dict[str, Schema]:
    options = binding.options
    status = str(options.status or 200)
    if status == "204":
        return {status: {"description": "Done."}}
    if binding.method.server_streaming:
        return {status: _stream(binding, schemas)}
    if options.served_by_gateway:
        return {status: {"description": "Done."}}
    answer = binding.method.output_type
    if binding.response_body:
        found = field_path(answer, binding.response_body)[-1].message_type
        assert found is not None
        answer = found
    reference = schemas.reference(answer)
    content = {"schema": reference, "example": example_of(reference, schemas.components)}
    response: Schema = {
        "description": schemas.comment(answer.full_name) or "Done.",
        "content": {"application/json": content},
    }
    headers = _headers(binding)
    return {status: {**response, "headers": headers} if headers else response}


def _headers(binding: HttpBinding) -> Schema:
    text: Schema = {"schema": {"type": "string"}}
    options = binding.options
    found: Schema = {}
    if options.etag_field or options.etag_of_content:
        found["ETag"] = text
    if options.location:
        found["Location"] = text
    if options.replayed_field:
        found["Idempotency-Replayed"] = text
    return found


def _stream(binding: HttpBinding, schemas: Schemas) -> Schema:
    """Return the response of a stream: events, whose `data` has the schema of `x-event-schema`."""
    schema: Schema = {"type": "string"}
    if binding.method.output_type.full_name.endswith("SubscribeResponse"):
        schema["x-event-schema"] = _chat_events(schemas)
    return {
        "description": schemas.comment(binding.method.full_name),
        "content": {EVENT_STREAM: {"schema": schema}},
    }


def _chat_events(schemas: Schemas) -> Schema:
    kinds: list[Schema] = []
    for field in event_pb2.ChatEvent.DESCRIPTOR.oneofs_by_name["kind"].fields:
        assert field.message_type is not None
        name = "".join(word.capitalize() for word in field.name.split("_"))
        payload = schemas.reference(field.message_type)
        event: Schema = {
            "type": "object",
            "properties": {
                "type": {"type": "string", "const": field.name},
                "chat_id": {"type": "string", "format": "uuid"},
                field.name: payload,
            },
            "required": ["type", "chat_id"],
        }
        schemas.components[f"{name}StreamEvent"] = event
        kinds.append({"$ref": f"#/components/schemas/{name}StreamEvent"})
    schemas.components["ChatStreamEvent"] = {
        "oneOf": kinds,
        "discriminator": {"propertyName": "type"},
    }
    return {"$ref": "#/components/schemas/ChatStreamEvent"}


def _problem_response() -> Schema:
    reference = {"$ref": "#/components/schemas/Problem"}
    return {"description": "A problem.", "content": {PROBLEM_MEDIA_TYPE: {"schema": reference}}}


def _problem() -> Schema:
    text: Schema = {"type": "string"}
    properties: Schema = {
        "type": {"type": "string", "format": "uri", "description": "A page that says what to do."},
        "title": text,
        "status": {"type": "integer"},
        "detail": text,
        "instance": text,
        "code": {"type": "string", "description": "The constant that programs switch on."},
        "request_id": text,
        "trace_id": text,
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
                    "code": text,
                    "detail": text,
                },
            },
        },
    }
    return {
        "type": "object",
        "description": "A problem document of RFC 9457; programs switch on its code.",
        "required": ["type", "title", "status", "detail", "instance", "code", "retryable"],
        "properties": properties,
    }


def _tags(declared: tuple[HttpBinding, ...], schemas: Schemas) -> list[Schema]:
    services = dict.fromkeys(each.method.containing_service for each in declared)
    return [
        {
            "name": each.name.removesuffix("Service"),
            "description": schemas.comment(each.full_name),
        }
        for each in services
    ]


def comments() -> Mapping[str, str]:
    """Return the comments of all messages, fields, services and methods, by full name."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "protos.binpb"
        run_protoc("--include_source_info", f"--descriptor_set_out={output}", *sources)
        described = FileDescriptorSet.FromString(output.read_bytes())
    return {name: text for file in described.file for name, text in _comments(file)}


def _comments(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    for location in file.source_code_info.location:
        text = " ".join(location.leading_comments.split())
        name = _name(file, list(location.path))
        if text and name:
            yield f"{file.package}.{name}", text


def _name(file: FileDescriptorProto, path: list[int]) -> str:
    """Return the name of a declaration from its path in the descriptor; empty for others."""
    names: list[str] = []
    holder: Any = file
    while path:
        number, path = path[0], path[1:]
        kind = holder.DESCRIPTOR.fields_by_number[number]
        if not path or not kind.is_repeated or kind.message_type is None:
            return ""
        holder, path = getattr(holder, kind.name)[path[0]], path[1:]
        if not hasattr(holder, "name"):
            return ""
        names.append(holder.name)
    return ".".join(names)


if __name__ == "__main__":
    raise SystemExit(main())
