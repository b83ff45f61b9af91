"""Decodes contents of version 0: envelopes and untyped lists that are no longer written.

The shape is detected from the structure: a text is a JSON string; an envelope's elements have an
object member `data`, which no part of the current version has; tool results may be a list of rows
without a type.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import (
    File,
    Part,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)

Fields = Mapping[str, Any]  # JSON of unknown shape, read field by field.


class UnreadableContent(Exception):
    """A stored content has no known shape."""

    def __init__(self, version: int, problem: str) -> None:
        super().__init__(f"a content of version {version} cannot be read: {problem}")
        self.version = version
        self.problem = problem


def legacy_parts(text: str, role: Role) -> tuple[Part, ...]:
    """Return the parts of a content of version 0.

    Raises:
        UnreadableContent: it has none of the shapes of version 0.
    """
    content = json.loads(text)
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        raise UnreadableContent(0, "it is neither a text nor a list of objects")
    if role is Role.TOOL and not any(each.get("type") == "tool-result" for each in content):
        return tuple(_result(each) for each in content)
    if content and isinstance(content[0].get("data"), dict):
        content = [{"type": each.get("type"), **each["data"]} for each in content]
    return tuple(_part(each) for each in content)


def _part(fields: Fields) -> Part:
    read = _READERS.get(str(fields.get("type")))
    if read is None:
        raise UnreadableContent(0, f"it has a part of type {fields.get('type')!r}")
    return read(fields)


def _result(fields: Fields) -> ToolResult:
    is_error = bool(fields.get("is_error"))
    return ToolResult(
        tool_call_id=str(fields.get("tool_call_id", "")),
        tool_name=str(fields.get("tool_name", "")),
        result_json=json.dumps(fields.get("result"), ensure_ascii=False),
        outcome=ToolOutcome.FAILED if is_error else ToolOutcome.DONE,
        provider_executed=bool(fields.get("provider_executed")),
    )


def _call(fields: Fields) -> ToolCall:
    arguments = fields.get("args", fields.get("input", {}))
    return ToolCall(
        tool_call_id=str(fields.get("tool_call_id", "")),
        tool_name=str(fields.get("tool_name", "")),
        args_json=(
            arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        ),
        provider_executed=bool(fields.get("provider_executed")),
    )


_READERS: Mapping[str, Callable[[Fields], Part]] = {
    "text": lambda fields: Text(str(fields.get("text", ""))),
    "reasoning": lambda fields: Reasoning(str(fields.get("text", ""))),
    "tool-call": _call,
    "tool-result": _result,
    "source": lambda fields: Source(
        str(fields.get("source_id", "")), str(fields.get("url", "")), str(fields.get("title", ""))
    ),
    "file": lambda fields: File(
        str(fields.get("file_id", "")),
        str(fields.get("media_type", "")),
        str(fields.get("name", "")),
    ),
}
