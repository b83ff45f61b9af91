"""Helpers of the conversion to JSON."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from gateway.api.json_output import embedded_json as embedded_json
from parley.api.chat.v1 import chat_pb2

Json = dict[str, object]


def enum_names(enum: Any, prefix: str) -> Mapping[int, str | None]:
    """Return the lower-case name of each value of a proto enum; None for the unspecified one."""
    return {
        value: None if value == 0 else name.removeprefix(prefix).lower()
        for name, value in enum.items()
    }


EFFORT = enum_names(chat_pb2.ReasoningEffort, "REASONING_EFFORT_")


def time_of(holder: Any, name: str) -> str | None:
    """Return the time in a field of a message; None if it is absent."""
    if not holder.HasField(name):
        return None
    timestamp: Timestamp = getattr(holder, name)
    return timestamp.ToJsonString()
