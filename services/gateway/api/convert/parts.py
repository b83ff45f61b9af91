"""Helpers of the conversion to JSON."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

Json = dict[str, object]


def enum_names(enum: Any, prefix: str) -> Mapping[int, str | None]:
    """Return the lower-case name of each value of a proto enum; None for the unspecified one."""
    return {
        value: None if value == 0 else name.removeprefix(prefix).lower()
        for name, value in enum.items()
    }


def time_of(holder: Any, name: str) -> str | None:
    """Return the time in a field of a message; None if it is absent."""
    if not holder.HasField(name):
        return None
    timestamp: Timestamp = getattr(holder, name)
    return timestamp.ToJsonString()
