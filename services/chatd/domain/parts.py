"""The typed parts a message consists of, exactly as they are stored."""

from datetime import datetime
from enum import StrEnum

import msgspec


class ToolOutcome(StrEnum):
    """How a tool call ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # It may or may not have run; nobody can tell.


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Text that is shown as it is."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", omit_defaults=True):
    """What the model thought."""

    text: str
    created_at: datetime | None = None
    completed_at: datetime | None = None


class ToolCall(msgspec.Struct, frozen=True, tag="tool-call", omit_defaults=True):
    """A call of a tool by the model."""

    tool_call_id: str
    tool_name: str
    args_json: str
    mcp_server_id: str = ""
    provider_executed: bool = False


class ToolResult(msgspec.Struct, frozen=True, tag="tool-result", omit_defaults=True):
    """The result of a tool call."""

    tool_call_id: str
    tool_name: str
    result_json: str
    outcome: ToolOutcome
    mcp_server_id: str = ""
    provider_executed: bool = False


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """Something the installation tells the reader; the model never sees it."""

    text: str


Part = Text | Reasoning | ToolCall | ToolResult | Notice
