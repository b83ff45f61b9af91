"""Helpers of the conversion of request bodies to protos."""

from typing import Any

import msgspec
from msgspec import UNSET

from gateway.api.inputs.chats import Effort, JsonObject
from parley.api.chat.v1 import chat_pb2


def effort_to_proto(effort: Effort | None) -> "chat_pb2.ReasoningEffort.ValueType":
    """Convert a reasoning effort; None leaves it to the model or the chat."""
    if effort is None:
        return chat_pb2.REASONING_EFFORT_UNSPECIFIED
    return chat_pb2.ReasoningEffort.Value(f"REASONING_EFFORT_{effort.name}")


def given_fields(patch: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that a patch contains, in the order of its type."""
    values = ((name, getattr(patch, name)) for name in patch.__struct_fields__)
    return {name: value for name, value in values if value is not UNSET}


def json_text(document: JsonObject | None) -> str:
    """Encode a JSON object as text, with its members unchanged; empty for None."""
    return "" if document is None else msgspec.json.encode(document).decode()
