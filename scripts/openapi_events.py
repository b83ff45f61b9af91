"""JSON Schemas of server-sent events: the document in the `data` of each event of a stream."""

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor import Descriptor
from openapi_schemas import REFERENCE, Schema, Schemas

from gateway.api.events import FLAT_EVENTS
from parley.api.chat.v1 import break_glass_pb2, chat_pb2, event_pb2, stream_service_pb2
from parley.contract.bindings import HttpBinding
from parley.contract.json_fields import enum_words, json_fields

UUID: Schema = {"type": "string", "format": "uuid"}
#: Names of events by the message of their stream.
PREFIXES: Mapping[str, str] = {
    "SubscribeResponse": "Chat",
    "WatchChatsResponse": "Feed",
    "WatchWorkspaceResponse": "Workspace",
    "WatchWorkspaceGitResponse": "Git",
}
#: Type -> description of the events that end a stream.
ENDINGS: Mapping[str, str] = {
    "resync": "The reader has to discard all state and open the stream again without a cursor.",
    "bye": "The reader has to open the stream again with its last cursor.",
    "error": "The reader may no longer read this; the stream is not opened again.",
}
STREAM_ERROR: Schema = {
    "type": "object",
    "description": "Why a stream ended for good.",
    "properties": {
        "code": {"type": "string", "const": "permission_revoked"},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
    },
    "required": ["code", "message", "retryable"],
}


def event_schema(binding: HttpBinding, schemas: Schemas) -> Schema:
    """Return a reference to the schema of the events of a stream, which is added."""
    message = binding.method.output_type
    prefix = PREFIXES[message.name]
    about = {variable.name: UUID for variable in binding.variables}
    kinds = dict(_endings(about, schemas))
    # An event of the stream itself that has the same type has the same schema.
    kinds |= dict(_kinds(message, about, schemas))
    mapping: dict[str, str] = {}
    for kind, schema in sorted(kinds.items()):
        name = f"{prefix}{_camel_case(kind)}Event"
        schemas.components[name] = schema
        mapping[kind] = REFERENCE.format(name)
    schemas.components[f"{prefix}Event"] = {
        "description": f"An event of the stream {binding.path}, by its type.",
        "oneOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    return {"$ref": REFERENCE.format(f"{prefix}Event")}


def _kinds(
    message: Descriptor, about: Mapping[str, Schema], schemas: Schemas
) -> Iterator[tuple[str, Schema]]:
    """Yield the types of a stream's events with their schemas."""
    if message is stream_service_pb2.SubscribeResponse.DESCRIPTOR:
        yield from _chat_events(about, schemas)
    elif message is stream_service_pb2.WatchChatsResponse.DESCRIPTOR:
        yield from _feed_events(schemas)
    else:
        for field in json_fields(message):
            comment = schemas.comment(field.descriptor.full_name)
            # The one text among them is the directory of a repository.
            value: Schema = {
                "type": "object",
                "properties": {"repository": {"type": "string"}},
                "required": ["repository"],
            }
            if field.descriptor.message_type is not None:
                value = schemas.reference(field.message)
            event = _object(field.name, {**about, field.name: value})
            yield field.name, {**event, "description": comment}


def _chat_events(about: Mapping[str, Schema], schemas: Schemas) -> Iterator[tuple[str, Schema]]:
    schemas.components["StreamError"] = STREAM_ERROR
    for field in json_fields(event_pb2.ChatEvent.DESCRIPTOR):
        kind, payload = field.name, field.message
        if kind in FLAT_EVENTS:
            members = schemas.object(payload).get("properties", {})
        else:
            members = {kind: schemas.reference(payload)}
        if kind == "error":
            ended = {"$ref": REFERENCE.format("StreamError")}
            members = {kind: {"anyOf": [schemas.reference(payload), ended]}}
        comment = schemas.comment(payload.full_name)
        yield kind, {**_object(kind, {**about, **members}), "description": comment}


def _feed_events(schemas: Schemas) -> Iterator[tuple[str, Schema]]:
    change = event_pb2.FeedChange.DESCRIPTOR
    chat = schemas.reference(chat_pb2.Chat.DESCRIPTOR)
    access = schemas.reference(break_glass_pb2.BreakGlassAccess.DESCRIPTOR)
    for number, kind in enum_words(change).items():
        is_deleted = number == event_pb2.FEED_CHANGE_DELETED
        members = {"chat_id": UUID} if is_deleted else {"chat_id": UUID, "chat": chat}
        if number == event_pb2.FEED_CHANGE_BREAK_GLASS:
            members = {"break_glass": access}
        comment = schemas.comment(f"{change.full_name}.{change.values_by_number[number].name}")
        yield kind, {**_object(kind, members), "description": comment}


def _endings(about: Mapping[str, Schema], schemas: Schemas) -> Iterator[tuple[str, Schema]]:
    for kind, text in ENDINGS.items():
        members = dict(about)
        if kind == "error":
            schemas.components["StreamError"] = STREAM_ERROR
            members[kind] = {"$ref": REFERENCE.format("StreamError")}
        yield kind, {**_object(kind, members), "description": text}


def _object(kind: str, members: Mapping[str, Schema]) -> Schema:
    properties = {"type": {"type": "string", "const": kind}, **members}
    return {"type": "object", "properties": properties, "required": [*properties]}


def _camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
