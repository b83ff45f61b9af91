"""Large lines of servers, reduced to what is read of them.

Decoding takes time for each value, and a line of a few megabytes may have millions. A reduced line
has few, however large the texts are that it holds, and is the same message otherwise. This module
is loaded by a program of its own for each such line, so it imports little.
"""

from typing import Any, Final

import msgspec

#: A longer line is reduced before it is decoded by the service.
LARGE_LINE_BYTES: Final = 256 * 1024
PARTS_MAX: Final = 256
#: Resources and prompts that are listed, and arguments of each prompt.
ENTRIES_MAX: Final = 1000
ARGUMENTS_MAX: Final = 16
TOOLS_MAX: Final = 512
SCHEMAS_BYTES_MAX: Final = 256 * 1024
DESCRIPTION_CHARACTERS_MAX: Final = 2048
#: Structured content that is larger is kept as text.
STRUCTURED_BYTES_MAX: Final = 64 * 1024

_PART_TEXTS: Final = ("type", "text", "data", "mimeType", "uri", "name")
_RESOURCE_TEXTS: Final = ("uri", "mimeType", "text", "blob")
_ENTRY_TEXTS: Final = ("uri", "name", "title", "description", "mimeType")
_PROGRESS: Final = ("progressToken", "progress", "total", "message")


def reduced(line: bytes) -> bytes:
    """Return a line with what is read of its message; empty if it is not understood."""
    try:
        document = msgspec.json.decode(line)
        return msgspec.json.encode(_message(document)) if isinstance(document, dict) else b""
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return b""


def _message(document: dict[str, Any]) -> dict[str, Any]:
    kept = {key: document[key] for key in ("id", "method") if _is_plain(document.get(key))}
    params, result, error = (document.get(key) for key in ("params", "result", "error"))
    if isinstance(params, dict):
        kept["params"] = {key: params[key] for key in _PROGRESS if _is_plain(params.get(key))}
    if isinstance(result, dict):
        kept["result"] = _result(result)
    if isinstance(error, dict):
        kept["error"] = _texts(error, ("message",))
    return kept


def _result(result: dict[str, Any]) -> dict[str, Any]:
    kept = _texts(result, ("nextCursor", "instructions"))
    if result.get("isError") is True:
        kept["isError"] = True
    if isinstance(tools := result.get("tools"), list):
        kept["tools"] = _tools(tools)
    kept |= _references(result)
    content, structured = result.get("content"), result.get("structuredContent")
    if isinstance(content, list) and content:
        kept["content"] = _parts(content)
    elif isinstance(structured, dict):
        encoded = msgspec.json.encode(structured)
        if len(encoded) <= STRUCTURED_BYTES_MAX:
            kept["structuredContent"] = structured
        else:
            kept["content"] = [{"type": "text", "text": encoded.decode()}]
    return kept


def _references(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a result has of resources and prompts."""
    kept = _texts(result, ("description",))
    if isinstance(resources := result.get("resources"), list):
        found = (each for each in resources[:ENTRIES_MAX] if isinstance(each, dict))
        kept["resources"] = [_texts(each, _ENTRY_TEXTS) for each in found]
    if isinstance(prompts := result.get("prompts"), list):
        found = (each for each in prompts[:ENTRIES_MAX] if isinstance(each, dict))
        kept["prompts"] = [_prompt(each) for each in found]
    if isinstance(contents := result.get("contents"), list):
        found = (each for each in contents[:PARTS_MAX] if isinstance(each, dict))
        kept["contents"] = [_texts(each, _RESOURCE_TEXTS) for each in found]
    if isinstance(messages := result.get("messages"), list):
        found = (each for each in messages[:PARTS_MAX] if isinstance(each, dict))
        kept["messages"] = [
            {**_texts(each, ("role",)), "content": _part(each.get("content"))} for each in found
        ]
    return kept


def _prompt(entry: dict[str, Any]) -> dict[str, Any]:
    kept = _texts(entry, _ENTRY_TEXTS)
    if isinstance(arguments := entry.get("arguments"), list):
        kept["arguments"] = [
            {**_texts(each, ("name", "description")), "required": each.get("required") is True}
            for each in arguments[:ARGUMENTS_MAX]
            if isinstance(each, dict)
        ]
    return kept


def _parts(content: list[Any]) -> list[Any]:
    if len(content) <= PARTS_MAX:
        return [_part(block) for block in content]
    cut = {"type": "text", "text": f"[{len(content) - PARTS_MAX + 1} more parts were cut]"}
    return [*(_part(block) for block in content[: PARTS_MAX - 1]), cut]


def _part(block: Any) -> Any:
    if not isinstance(block, dict):
        return None
    kept = _texts(block, _PART_TEXTS)
    if isinstance(resource := block.get("resource"), dict):
        kept["resource"] = _texts(resource, _RESOURCE_TEXTS)
    return kept


def _tools(entries: list[Any]) -> list[Any]:
    """Return the tools whose schemas together are not too large, and None for each other one."""
    left_bytes = SCHEMAS_BYTES_MAX
    kept: list[Any] = []
    for entry in entries[:TOOLS_MAX]:
        if not isinstance(entry, dict) or not isinstance(schema := entry.get("inputSchema"), dict):
            kept.append(None)
            continue
        size = len(msgspec.json.encode(schema))
        if size > left_bytes:
            kept.append(None)
            continue
        left_bytes -= size
        texts = _texts(entry, ("name", "description"))
        description = texts.get("description", "")[:DESCRIPTION_CHARACTERS_MAX]
        kept.append({**texts, "description": description, "inputSchema": schema})
    return kept


def _texts(document: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: document[key] for key in keys if isinstance(document.get(key), str)}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)
