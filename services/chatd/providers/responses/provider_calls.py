"""Provider-executed tools: converts an item into call and result, and back.

The output of a tool is only in the result, images in the format of MCP, so that it is stored once
and is shown like any other result.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.providers.responses.item_origins import ItemOrigin, encoded_origin

Item = dict[str, Any]  # JSON of the provider; each kind of item has its own fields.

# The output fields, by kind of item.
_OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "file_search_call": ("results",),
    "code_interpreter_call": ("outputs",),
    "image_generation_call": ("result",),
    "mcp_call": ("output", "error"),
    "mcp_list_tools": ("tools", "error"),
}
_NOT_ARGUMENTS = frozenset({"id", "type", "status"})
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)


def is_provider_call(kind: str) -> bool:
    """Return whether an item of this kind is a tool that the provider executed."""
    return kind.endswith("_call") or kind == "mcp_list_tools"


def call_and_result(kind: str, item_id: str, item: Item) -> tuple[ToolCall, ToolResult]:
    """Return a provider-executed tool as stored call and result."""
    kept, visible = _parted(kind, item | {"type": kind})
    name = _tool_name(kind, item)
    call = ToolCall(
        item_id,
        name,
        _json(_arguments(kind, kept)),
        provider_executed=True,
        provider_metadata=encoded_origin(ItemOrigin(item_id, item=kept)),
    )
    has_failed = item.get("status") in ("failed", "incomplete") or bool(item.get("error"))
    outcome = ToolOutcome.FAILED if has_failed else ToolOutcome.DONE
    result_json = _json(_shown(kind, item, visible))
    return call, ToolResult(item_id, name, result_json, outcome, provider_executed=True)


def item_of(origin: ItemOrigin, result: ToolResult | None, *, is_stored: bool) -> Item | None:
    """Return the item to send back; None if it cannot be rebuilt.

    Args:
        origin: The item that the call comes from.
        result: Its result.
        is_stored: Whether the provider still has the item, so that no image has to be sent.
    """
    item = dict(origin.item or {})
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _OUTPUTS:
        return item or None
    if kind == "image_generation_call" and is_stored:
        return {"type": kind, "id": origin.id}
    try:
        visible = json.loads(result.result_json) if result is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(visible, dict):
        return None
    return item | _replayed_fields(kind, visible)


def _parted(kind: str, item: Item) -> tuple[Item, Item]:
    """Return input and output fields of an item."""
    names = _OUTPUTS.get(kind, ())
    kept = {name: value for name, value in item.items() if name not in names}
    visible = {name: item.get(name) for name in names}
    action = item.get("action")
    if isinstance(action, dict) and "sources" in action:
        kept["action"] = {name: value for name, value in action.items() if name != "sources"}
        visible["sources"] = action["sources"]
    return kept, visible


def _tool_name(kind: str, item: Item) -> str:
    name = item.get("name")
    return name if isinstance(name, str) and name else kind.removesuffix("_call")


def _arguments(kind: str, kept: Item) -> object:
    action = kept.get("action")
    if isinstance(action, dict):
        return action
    if kind == "mcp_call":
        try:
            given = json.loads(str(kept.get("arguments")))
        except (ValueError, RecursionError):
            given = None
        if isinstance(given, dict):
            return given
    return {name: value for name, value in kept.items() if name not in _NOT_ARGUMENTS}


def _shown(kind: str, item: Item, visible: Item) -> Item:
    """Return a result as it is stored and shown."""
    status = {"status": item["status"]} if "status" in item else {}
    match kind, visible:
        case "code_interpreter_call", {"outputs": list(outputs)}:
            return {"content": [_shown_output(output) for output in outputs]} | status
        case "image_generation_call", {"result": str(data)}:
            media_type = f"image/{item.get('output_format') or 'png'}"
            return {"content": [{"type": "image", "mimeType": media_type, "data": data}]} | status
        case _:
            return status | {name: value for name, value in visible.items() if value is not None}


def _shown_output(output: Any) -> object:
    match output:
        case {"type": "logs", "logs": str(logs)}:
            return {"type": "text", "text": logs}
        case {"type": "image", "url": str(url)} if (found := _DATA_URL.fullmatch(url)) is not None:
            return {"type": "image", "mimeType": found[1], "data": found[2]}
        case _:
            return output if isinstance(output, dict) and "type" in output else {"type": "unknown"}


def _replayed_fields(kind: str, shown: Item) -> Item:
    """Return the output fields as the provider sent them."""
    content = shown.get("content")
    match kind, content:
        case "code_interpreter_call", list(outputs):
            return {"outputs": [_given_output(output) for output in outputs]}
        case "image_generation_call", [{"data": str(data)}]:
            return {"result": data}
        case _:
            return {name: shown.get(name) for name in _OUTPUTS[kind]}


def _given_output(shown: Any) -> object:
    match shown:
        case {"type": "text", "text": str(text)}:
            return {"type": "logs", "logs": text}
        case {"type": "image", "mimeType": str(media_type), "data": str(data)}:
            return {"type": "image", "url": f"data:{media_type};base64,{data}"}
        case _:
            return shown


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
