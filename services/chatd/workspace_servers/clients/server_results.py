"""Results of workspace servers, in the form of the results of all other MCP servers."""

import base64
import binascii
from typing import Any, Final

import msgspec

from parley.api.mcp.v1 import tool_pb2

PARTS_MAX: Final = 256
TEXT_CHARACTERS_MAX: Final = 4 * 1024 * 1024
NAME_CHARACTERS_MAX: Final = 256
URI_CHARACTERS_MAX: Final = 2048


def call_result(result: dict[str, Any]) -> tool_pb2.CallResult:
    """Convert the result of a call; what is not well formed becomes a part that says so."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_part(block) for block in blocks[:PARTS_MAX]]
    if len(blocks) > PARTS_MAX:
        parts.append(_text(f"[{len(blocks) - PARTS_MAX} more parts were cut]"))
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and not parts:
        parts.append(_structured(structured))
    is_error = result.get("isError") is True
    outcome = tool_pb2.CALL_OUTCOME_TOOL_ERROR if is_error else tool_pb2.CALL_OUTCOME_SUCCEEDED
    return tool_pb2.CallResult(outcome=outcome, parts=parts)


def _structured(structured: dict[str, Any]) -> tool_pb2.ContentPart:
    try:
        encoded = msgspec.json.encode(structured)
    except RecursionError:
        return _text("[structured content that is too deep was left out]")
    return tool_pb2.ContentPart(structured=tool_pb2.StructuredContent(json=encoded))


def _part(block: Any) -> tool_pb2.ContentPart:
    if not isinstance(block, dict):
        return _text("[a part that is no object was left out]")
    try:
        match block.get("type"):
            case "text":
                return _text(_string(block, "text"))
            case "image":
                return tool_pb2.ContentPart(image=_blob(block))
            case "audio":
                return tool_pb2.ContentPart(audio=_blob(block))
            case "resource_link":
                return tool_pb2.ContentPart(
                    resource_link=tool_pb2.ResourceLink(
                        uri=_string(block, "uri")[:URI_CHARACTERS_MAX],
                        name=_string(block, "name")[:NAME_CHARACTERS_MAX],
                    )
                )
            case "resource" if isinstance(block.get("resource"), dict):
                return _resource(block["resource"])
            case _:
                return _text("[a part of a kind that is not supported was left out]")
    except binascii.Error:
        return _text("[a part that is not valid base64 was left out]")


def _text(text: str) -> tool_pb2.ContentPart:
    return tool_pb2.ContentPart(text=tool_pb2.TextContent(text=text))


def _string(block: dict[str, Any], key: str) -> str:
    value = block.get(key)
    text = value[:TEXT_CHARACTERS_MAX] if isinstance(value, str) else ""
    # PostgreSQL stores no NUL, and no half of a surrogate pair.
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _blob(block: dict[str, Any]) -> tool_pb2.BlobContent:
    data = base64.b64decode(_string(block, "data"), validate=True)
    return tool_pb2.BlobContent(
        media_type=_string(block, "mimeType")[:NAME_CHARACTERS_MAX], data=data
    )


def _resource(resource: dict[str, Any]) -> tool_pb2.ContentPart:
    told = tool_pb2.ResourceContent(
        uri=_string(resource, "uri")[:URI_CHARACTERS_MAX],
        media_type=_string(resource, "mimeType")[:NAME_CHARACTERS_MAX],
    )
    if "blob" in resource:
        told.data = base64.b64decode(_string(resource, "blob"), validate=True)
    else:
        told.text = _string(resource, "text")
    return tool_pb2.ContentPart(resource=told)
