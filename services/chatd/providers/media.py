"""What a tool gave, as models read it: texts and pictures, whatever the wire format.

A result is JSON. One that looks like that of an MCP server (`{"content": [{"type": "text", ...}]}`)
is read part by part; bytes in it become a picture or a note, because base64 that is sent as text
costs a fortune in tokens and tells a model nothing.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chatd.content.domain.truncation import repaired

_NOTHING = "[no output]"
_BYTES_FIELDS = ("data", "blob")
# What is left of bytes when JSON was cut in its middle: the field's name and a long run after it.
_RAW_BYTES = re.compile(r'(\\*"(?:data|blob)\\*"\s*:\s*\\*")[A-Za-z0-9+/=_-]{256,}')


@dataclass(frozen=True, slots=True)
class TextContent:
    """Something to read."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageContent:
    """A picture of a type that models read, its bytes as base64 that was checked."""

    media_type: str
    data_base64: str

    @property
    def bytes_count(self) -> int:
        """Return how large the picture is."""
        return len(self.data_base64) * 3 // 4 - self.data_base64[-2:].count("=")


#: Without this an object is not in the manner of MCP.
PARTS = '"content"'

ResultContent = TextContent | ImageContent


def read_result(result_json: str) -> tuple[ResultContent, ...]:
    """Return what a result holds, in its order; never empty, never with bytes as text."""
    if result_json.startswith("{") and PARTS not in result_json:
        # A request tells all results of a chat again, and nearly all are such.
        return (TextContent(_without_bytes(result_json)),)
    try:
        value = json.loads(result_json)
    except (ValueError, RecursionError):
        return (TextContent(_without_bytes(result_json) if result_json.strip() else _NOTHING),)
    if isinstance(value, str):
        return (TextContent(_without_bytes(value) if value.strip() else _NOTHING),)
    parts = _mcp_parts(value)
    if parts is None:
        return (TextContent(_without_bytes(result_json)),)
    return tuple(parts) or (TextContent(_NOTHING),)


def result_text(result_json: str) -> str:
    """Return a result for a format that knows no pictures in results."""
    return "\n".join(as_text(part) for part in read_result(result_json))


def as_text(content: ResultContent) -> str:
    """Return some content in words; of a picture only that there is one."""
    match content:
        case TextContent(text):
            return text
        case ImageContent(media_type):
            return f"[an image of type {media_type}, {content.bytes_count} bytes]"


def image_media_type(data: bytes) -> str | None:
    """Return the type of a picture that every provider reads, None for all other bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _mcp_parts(value: object) -> list[ResultContent] | None:
    """Return the parts of a result in the manner of MCP, None if it is anything else."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return None
    items = value["content"]
    if not all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in items):
        return None
    parts = [part for item in items for part in _part(item)]
    rest = {name: told for name, told in value.items() if name not in ("content", "_meta")}
    if rest:
        parts.append(TextContent(_json(rest)))
    return parts


def _part(item: Mapping[str, object]) -> Iterator[ResultContent]:
    match item:
        case {"type": "text", "text": str(text)}:
            if text.strip():
                yield TextContent(_without_bytes(text))
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            yield _media(kind, _media_type(item), data)
        case {"type": "resource", "resource": dict(resource)}:
            yield from _resource(resource)
        case {"type": "resource"}:
            yield from _resource(item)
        case {"type": "structured", "data": data}:
            yield TextContent(_json(data))
        case _:
            yield TextContent(_json(item))


def _resource(resource: Mapping[str, object]) -> Iterator[ResultContent]:
    for name in _BYTES_FIELDS:
        data = resource.get(name)
        if isinstance(data, str):
            yield _media("resource", _media_type(resource), data)
            return
    yield TextContent(_json(resource))


def _media(kind: str, media_type: str, data: str) -> ResultContent:
    """Return a picture, or a note about bytes that are none or that were damaged."""
    told_type = f" of type {media_type}" if media_type else ""
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return TextContent(f"[{kind}{told_type} that was damaged and cannot be shown]")
    if not decoded:
        return TextContent(f"[{kind}{told_type} that is empty]")
    if (found := image_media_type(decoded)) is not None:
        return ImageContent(found, data)
    return TextContent(f"[{kind}{told_type}, {len(decoded)} bytes, that cannot be shown]")


def _media_type(item: Mapping[str, object]) -> str:
    for name in ("media_type", "mimeType", "mime_type"):
        told = item.get(name)
        if isinstance(told, str):
            return told[:128]
    return ""


def _json(value: object) -> str:
    return _without_bytes(json.dumps(value, ensure_ascii=False))


def _without_bytes(text: str) -> str:
    return _RAW_BYTES.sub(r"\1[bytes left out]", repaired(text))
