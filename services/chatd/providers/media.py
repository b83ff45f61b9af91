"""Converts tool results into texts and images, for all wire formats.

A result is JSON. One in the format of MCP (`{"content": [{"type": "text", ...}]}`) is read part by
part; bytes in it become an image or a note, because base64 sent as text costs many tokens and is
useless to a model.
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
# Bytes in truncated JSON: the field's name and a long base64 run after it.
_RAW_BYTES = re.compile(r'(\\*"(?:data|blob)\\*"\s*:\s*\\*")[A-Za-z0-9+/=_-]{256,}')


@dataclass(frozen=True, slots=True)
class TextContent:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image of a type that models accept; its base64 was validated."""

    media_type: str
    data_base64: str

    @property
    def bytes_count(self) -> int:
        """Return the size of the image."""
        return len(self.data_base64) * 3 // 4 - self.data_base64[-2:].count("=")


# Without this an object is not in the format of MCP.
PARTS = '"content"'

ResultContent = TextContent | ImageContent


def read_result(result_json: str) -> tuple[ResultContent, ...]:
    """Return the contents of a result in order; never empty, never with bytes as text."""
    if result_json.startswith("{") and PARTS not in result_json:
        # A request contains all results of a chat, and nearly all are such.
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
    """Return a result as text, for a format without images in results."""
    return "\n".join(as_text(part) for part in read_result(result_json))


def as_text(content: ResultContent) -> str:
    """Return content as text; for an image only a note."""
    match content:
        case TextContent(text):
            return text
        case ImageContent(media_type):
            return f"[an image of type {media_type}, {content.bytes_count} bytes]"


def image_media_type(data: bytes) -> str | None:
    """Return the type of an image that every provider accepts; None for all other bytes."""
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
    """Return the parts of a result in the format of MCP; None for any other."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return None
    items = value["content"]
    if not all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in items):
        return None
    parts = [part for item in items for part in _part(item)]
    rest = {name: entry for name, entry in value.items() if name not in ("content", "_meta")}
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
    """Return an image, or a note about bytes that are none or are damaged."""
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
        found = item.get(name)
        if isinstance(found, str):
            return found[:128]
    return ""


def _json(value: object) -> str:
    return _without_bytes(json.dumps(value, ensure_ascii=False))


def _without_bytes(text: str) -> str:
    return _RAW_BYTES.sub(r"\1[bytes left out]", repaired(text))
