"""The operations of the HTTP API: parameters, bodies and responses of a binding."""

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor import FieldDescriptor
from openapi_bodies import Bodies
from openapi_events import event_schema
from openapi_examples import example_of
from openapi_problems import RETRY_AFTER, problems_of
from openapi_schemas import Schema, Schemas

from gateway.api.export_formats import ExportFormat, writer_for
from gateway.api.transcoded_route import REQUEST_ID, query_of
from gateway.routes.files import UPLOADED_TYPES
from parley.api.contract.v1 import options_pb2
from parley.contract.bindings import HttpBinding, PathVariable, field_path
from parley.contract.json_fields import json_field
from parley.identity import AUDIENCES, rule_of

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
BYTES = "application/octet-stream"
PATCH = (
    "A merge patch (RFC 7396): absent members stay as they are, null clears. The type "
    "application/merge-patch+json is accepted as well."
)
#: Parameters in headers, by the name of their component.
HEADER_PARAMETERS: Mapping[str, Schema] = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "1 to 128 printable characters; a repetition returns the first outcome.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "description": "The ETag of what was read, or several; 412 if it has another one by now.",
        "schema": {"type": "string"},
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "description": "The ETag of what is known; 304 if that is still the newest.",
        "schema": {"type": "string"},
    },
    "LastEventId": {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The `id` of the last event that was read, to continue after it.",
        "schema": {"type": "string"},
    },
    "Range": {
        "name": "Range",
        "in": "header",
        "description": "The bytes that are wanted, such as `bytes=0-1023`.",
        "schema": {"type": "string"},
    },
}
#: Headers of responses.
HEADERS: Mapping[str, Schema] = {
    "ETag": {"description": "The version, for If-Match.", "schema": {"type": "string"}},
    "Location": {
        "description": "The path of what was created.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Idempotency-Replayed": {
        "description": "Present if this is the stored answer of an earlier request.",
        "schema": {"type": "string", "const": "true"},
    },
    "Retry-After": RETRY_AFTER,
    "RateLimit-Policy": {
        "description": "Each quota that applies: requests `q` in `w` seconds.",
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": "Of each quota, the requests `r` that are left now, and in how many seconds "
        "`t` it is whole again.",
        "schema": {"type": "string"},
    },
}
#: Query parameters of routes that the gateway serves itself.
QUERY: Mapping[str, tuple[Schema, str]] = {
    "create_only": ({"type": "boolean"}, "Whether the file must not exist."),
    "path": ({"type": "string"}, "The file; directories above it are made."),
    "types": ({"type": "string"}, "Types of events that are wanted, separated by commas."),
    "processes": (
        {"type": "string"},
        "Processes whose output is followed, separated by commas; each an id, or an id, a colon "
        "and the cursor to continue at.",
    ),
    "workdir": ({"type": "string"}, "Directory that the shell starts in."),
    "rows": ({"type": "integer", "minimum": 1}, "Height of the terminal; with `columns`."),
    "columns": ({"type": "integer", "minimum": 1}, "Width of the terminal; with `rows`."),
    "view_only": ({"type": "boolean"}, "Whether input is refused."),
    "cursor": ({"type": "integer", "minimum": 0}, "Position in the output to continue at."),
    "wait": ({"type": "integer", "minimum": 0}, "Seconds to wait at most."),
    "until": (
        {"type": "string", "enum": ["exit", "output", "match", "snapshot"]},
        "What is waited for.",
    ),
    "pattern": ({"type": "string"}, "Regular expression of `match`."),
    "max_bytes": ({"type": "integer", "minimum": 1}, "Bytes of output that are returned at most."),
    "name": ({"type": "string"}, "Name of the file; needed without Content-Disposition."),
    "format": (
        {"type": "string", "enum": [*ExportFormat], "default": ExportFormat.JSON},
        "The format of the export.",
    ),
}


class Operations:
    """Describes bindings.

    Attributes:
        examples: The examples of responses, by the names of their schemas.
    """

    def __init__(self, schemas: Schemas, bodies: Bodies) -> None:
        self._schemas = schemas
        self._bodies = bodies
        self.examples: dict[str, Schema] = {}

    def of(self, binding: HttpBinding) -> Schema:
        """Return the operation of a binding."""
        rule = rule_of(binding.call_path)
        operation: Schema = {
            "operationId": binding.operation_id,
            "summary": binding.options.summary,
            "description": self._schemas.comment(binding.method.full_name),
            "tags": [binding.method.containing_service.name.removesuffix("Service")],
            "x-roles": sorted(AUDIENCES[binding.options.audience]),
            "x-scope": None if rule is None else rule.scope_needed,
            "x-grpc-method": binding.call_path.removeprefix("/"),
            "parameters": [*self._parameters(binding)],
        }
        if binding.options.audience == options_pb2.AUDIENCE_ANONYMOUS:
            operation["security"] = []
        body = self._request_body(binding)
        if body is not None:
            operation["requestBody"] = body
        operation["responses"] = {**self._success(binding), **problems_of(binding)}
        return operation

    def _request_body(self, binding: HttpBinding) -> Schema | None:
        if is_upload(binding):
            # Binary content needs no schema in OpenAPI 3.1, but generators of clients want one.
            return {
                "required": True,
                "description": f"The bytes of a file: {', '.join(UPLOADED_TYPES)}.",
                "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
            }
        body = self._bodies.of(binding)
        if body is None:
            return None
        content = {"schema": body, "example": example_of(body, self._bodies.components)}
        found: Schema = {"required": not binding.options.body_optional, "content": {JSON: content}}
        # Generators of clients repeat the body for each media type.
        return {"description": PATCH, **found} if binding.verb == "PATCH" else found

    def _parameters(self, binding: HttpBinding) -> Iterator[Schema]:
        options = binding.options
        for variable in binding.variables:
            yield self._path_parameter(variable)
        query = {} if is_terminal(binding) else query_of(binding)
        for name, parameter in query.items():
            yield self._query_parameter(name, parameter.field)
        for name in options.query:
            if name not in query:
                schema, text = QUERY.get(name, ({"type": "string"}, ""))
                found: Schema = {"name": name, "in": "query", "schema": schema}
                yield {**found, "description": text} if text else found
        if REQUEST_ID in binding.method.input_type.fields_by_name or is_upload(binding):
            yield _parameter("IdempotencyKey")
        if options.if_match_field:
            yield _parameter("IfMatch")
        elif binding.verb == "GET" and (options.etag_of_content or options.etag_field):
            yield _parameter("IfNoneMatch")
        if is_event_stream(binding) and "cursor" in query:
            yield _parameter("LastEventId")
        if is_download(binding) and not _is_export(binding):
            yield _parameter("Range")

    def _path_parameter(self, variable: PathVariable) -> Schema:
        field = variable.fields[-1]
        declared = json_field(field)
        schema: Schema = {"type": "string"}
        if field.enum_type is not None:
            schema = self._schemas.choice(field.enum_type)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_INT64:
            schema = {"type": "integer", "minimum": 1}
        elif declared is not None and declared.rules.is_uuid:
            schema["format"] = "uuid"
        found: Schema = {"name": variable.name, "in": "path", "required": True, "schema": schema}
        comment = self._schemas.comment(field.full_name)
        return {**found, "description": comment} if comment else found

    def _query_parameter(self, name: str, descriptor: FieldDescriptor) -> Schema:
        field = json_field(descriptor)
        assert field is not None
        schema: Schema = self._schemas.field(field)
        comment = schema.pop("description", "")
        if isinstance(schema.get("type"), list):
            schema["type"] = schema["type"][0]
        if schema.get("oneOf", ())[1:] == [{"type": "null"}]:
            schema = schema["oneOf"][0]
        if field.is_map:
            schema = {"type": "array", "items": {"type": "string", "examples": ["key:value"]}}
        for key, bound in (("minimum", field.rules.least), ("maximum", field.rules.most)):
            if bound is not None:
                schema[key] = bound
        if field.rules.length_max is not None and schema.get("type") == "string":
            schema["maxLength"] = field.rules.length_max
        found: Schema = {"name": name, "in": "query", "schema": schema}
        return {**found, "description": comment} if comment else found

    def _success(self, binding: HttpBinding) -> dict[str, Schema]:
        status = str(binding.options.status or 200)
        if is_terminal(binding):
            return {"101": {"description": "The connection continues as a WebSocket."}}
        if status == "204":
            return {status: {"description": "Done."}}
        if is_event_stream(binding):
            return {status: self._stream(binding)}
        if is_download(binding):
            return _bytes(binding)
        response = self._document(binding)
        headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _headers(binding)}
        found = {status: {**response, "headers": headers} if headers else response}
        if binding.verb == "GET" and "ETag" in headers:
            found["304"] = {"description": "What the client knows is still the newest."}
        return found

    def _document(self, binding: HttpBinding) -> Schema:
        answer = binding.method.output_type
        if binding.response_body:
            found = field_path(answer, binding.response_body)[-1].message_type
            assert found is not None
            answer = found
        reference = self._schemas.reference(answer)
        name = reference["$ref"].rpartition("/")[2]
        if name not in self.examples:
            self.examples[name] = {"value": example_of(reference, self._schemas.components)}
        content = {
            "schema": reference,
            "examples": {"example": {"$ref": f"#/components/examples/{name}"}},
        }
        comment = self._schemas.comment(answer.full_name)
        return {"description": comment or "Done.", "content": {JSON: content}}

    def _stream(self, binding: HttpBinding) -> Schema:
        """Return the response of a stream, whose schema is that of the `data` of each event."""
        reference = event_schema(binding, self._schemas)
        components = self._schemas.components
        name = reference["$ref"].rpartition("/")[2]
        for kind, event in components[name]["discriminator"]["mapping"].items():
            example = example_of({"$ref": event}, components)
            self.examples[event.rpartition("/")[2]] = {"summary": kind, "value": example}
        examples = {
            kind: {"$ref": event.replace("/schemas/", "/examples/")}
            for kind, event in components[name]["discriminator"]["mapping"].items()
        }
        return {
            "description": "Server-sent events; the schema is that of the `data` of each event, "
            "and `event` repeats its `type`.",
            "content": {EVENT_STREAM: {"schema": reference, "examples": examples}},
        }


def is_terminal(binding: HttpBinding) -> bool:
    """Return whether a binding is a WebSocket."""
    return binding.path.endswith("/terminal")


def is_upload(binding: HttpBinding) -> bool:
    """Return whether the body of a binding is a file."""
    return bool(binding.method.client_streaming)


def is_event_stream(binding: HttpBinding) -> bool:
    """Return whether a binding is answered with events."""
    return "types" in binding.options.query


def is_download(binding: HttpBinding) -> bool:
    """Return whether a binding is answered with a file."""
    return bool(binding.method.server_streaming) and not is_event_stream(binding)


def _is_export(binding: HttpBinding) -> bool:
    return "format" in binding.options.query


def _bytes(binding: HttpBinding) -> dict[str, Schema]:
    if _is_export(binding):
        media_types = [writer_for(each).media_type for each in ExportFormat]
        content: Schema = {media_type: {} for media_type in media_types}
        return {"200": {"description": "The export.", "content": content}}
    content = {media_type: {} for media_type in _download_types(binding)}
    return {
        "200": {"description": "The file.", "content": content},
        "206": {"description": "The part of Range.", "content": content},
    }


def _download_types(binding: HttpBinding) -> tuple[str, ...]:
    """Return the types of a download; those of files of users are the types of their bytes."""
    match binding.path.rpartition("/")[2]:
        case "archive":
            return (BYTES, "application/zip")
        case "export":
            return (BYTES, "application/x-ndjson")
        case _:
            return (BYTES, "*/*")


def _headers(binding: HttpBinding) -> Iterator[str]:
    options = binding.options
    if options.etag_field or options.etag_of_content:
        yield "ETag"
    if options.location:
        yield "Location"
    if options.replayed_field:
        yield "Idempotency-Replayed"


def _parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}
