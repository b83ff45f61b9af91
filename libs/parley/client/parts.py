"""The parts of messages, as a closed union."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ToolOutcome(StrEnum):
    """How a tool call ended."""

    UNSPECIFIED = "unspecified"  # Still running, or a value newer than this client.
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # It may or may not have run.


@dataclass(frozen=True, slots=True)
class Text:
    """Text that is shown unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The reasoning of the model; empty where a provider hides it."""

    text: str
    created_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool by the model.

    Attributes:
        tool_call_id: Pairs the call with its result inside the chat.
        tool_name: The name the model used.
        args_json: The arguments as one JSON value; empty while they still stream.
        args_delta: A piece of the arguments' text; in live parts only.
        mcp_server_id: The MCP server that offers the tool; empty for others.
        is_provider_executed: Whether the provider runs it itself.
    """

    tool_call_id: str
    tool_name: str
    args_json: str = ""
    args_delta: str = ""
    mcp_server_id: str = ""
    is_provider_executed: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A stored file that belongs to the chat."""

    file_id: str
    media_type: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a running call is, in the unit of its tool; `total` is None if it is unknown."""

    progress: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        tool_call_id: The call it answers.
        tool_name: The name the model used.
        result_json: The result as one JSON value; empty while it still streams.
        result_delta: A piece of the output of a running call; in live parts only.
        is_reset: Whether the output before this delta must be discarded; in live parts only.
        outcome: How the call ended.
        mcp_server_id: The MCP server that offers the tool; empty for others.
        is_provider_executed: Whether the provider ran it itself.
        files: The files it shares in the chat.
        process_id: The process of a running call, to attach to; in live parts only.
        progress: How far a running call is; in live parts only.
    """

    tool_call_id: str
    tool_name: str
    result_json: str = ""
    result_delta: str = ""
    is_reset: bool = False
    outcome: ToolOutcome = ToolOutcome.UNSPECIFIED
    mcp_server_id: str = ""
    is_provider_executed: bool = False
    files: tuple[File, ...] = ()
    process_id: str = ""
    progress: CallProgress | None = None

    @property
    def is_running(self) -> bool:
        """Whether the call still runs: this is a delta of its live result."""
        return self.outcome is ToolOutcome.UNSPECIFIED and not self.result_json


@dataclass(frozen=True, slots=True)
class Source:
    """A source that the model cites."""

    source_id: str
    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class FileReference:
    """Lines of a file that the user points at, from `start_line` to `end_line` inclusive."""

    file_name: str
    start_line: int
    end_line: int
    content: str


@dataclass(frozen=True, slots=True)
class ContextFile:
    """An instruction file that was added to the prompt."""

    path: str
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that was added to the prompt."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of the installation or of a hook to the reader; it is not sent to the model."""

    text: str
    hook_name: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Fallback:
    """Another model continues the turn, because the provider of its own is down or over quota."""

    failed_model_id: str
    model_id: str
    kind: str
    text: str


Part = (
    Text
    | Reasoning
    | ToolCall
    | ToolResult
    | Source
    | File
    | FileReference
    | ContextFile
    | Skill
    | Notice
    | Fallback
)
UserPart = Text | File | FileReference
