"""Frames of AWS event streams, written by hand."""

import base64
import json
import struct
import zlib
from collections.abc import Mapping

EVENT = {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}


def frame(payload: bytes, headers: Mapping[str, str] = EVENT, *, raw_headers: bytes = b"") -> bytes:
    """Return one frame; raw headers come before the others."""
    encoded = raw_headers + b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value))
        + value.encode()
        for name, value in headers.items()
    )
    lengths = struct.pack(">II", 16 + len(encoded) + len(payload), len(encoded))
    prelude = lengths + struct.pack(">I", zlib.crc32(lengths))
    message = prelude + encoded + payload
    return message + struct.pack(">I", zlib.crc32(message))


def chunk(event: bytes) -> bytes:
    """Return the frame that carries one of the model's events."""
    return frame(json.dumps({"bytes": base64.b64encode(event).decode(), "p": "abc"}).encode())


def exception(name: str, **fields: object) -> bytes:
    """Return the frame that reports an exception."""
    headers = {":message-type": "exception", ":exception-type": name}
    return frame(json.dumps(fields).encode(), headers)
