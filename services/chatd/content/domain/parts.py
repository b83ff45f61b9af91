"""The typed parts of a message, exactly as they are stored."""

from datetime import datetime
from enum import StrEnum

import msgspec


class ToolOutcome(StrEnum):
    """How a tool call ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # Whether it ran cannot be determined.


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True):
    """Text that is shown unchanged."""

    text: str
    provider_metadata: str = ""  # JSON to send back to the provider; never leaves this service.


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", omit_defaults=True):
    """Reasoning text of the model."""

    text: str
    created_at: datetime | None = None
    completed_at: datetime | None = None
    provider_metadata: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag="tool-call", omit_defaults=True):
    """A call of a tool by the model."""

    tool_call_id: str
    tool_name: str
    args_json: str
    mcp_server_id: str = ""
    provider_executed: bool = False
    created_at: datetime | None = None
    provider_metadata: str = ""


class File(msgspec.Struct, frozen=True, tag="file", omit_defaults=True):
    """A file that belongs to the chat."""

    file_id: str
    media_type: str
    name: str = ""


class ReachedHosts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The hosts that a workspace reached by the end of a call, since the chats of a tree use it.

    Attributes:
        hosts: Those that any program but git reached.
        git_hosts: Those that git reached.
    """

    hosts: tuple[str, ...] = ()
    git_hosts: tuple[str, ...] = ()


class ToolResult(msgspec.Struct, frozen=True, tag="tool-result", omit_defaults=True):
    """The result of a tool call."""

    tool_call_id: str
    tool_name: str
    result_json: str
    outcome: ToolOutcome
    mcp_server_id: str = ""
    provider_executed: bool = False
    created_at: datetime | None = None
    provider_metadata: str = ""
    files: tuple[File, ...] = ()  # Shown to users of the chat; models read only the JSON.
    reached: ReachedHosts | None = None  # For the judgement of later calls; it is not shown.


class Source(msgspec.Struct, frozen=True, tag="source", omit_defaults=True):
    """A source that the model cites."""

    source_id: str
    url: str
    title: str = ""


class FileReference(msgspec.Struct, frozen=True, tag="file-reference"):
    """A range of lines of a file that the user refers to."""

    file_name: str
    start_line: int
    end_line: int
    content: str


class ContextFile(msgspec.Struct, frozen=True, tag="context-file", omit_defaults=True):
    """An instruction file that was sent to the model; its content is not returned by the API."""

    path: str
    content: str = ""
    truncated: bool = False


class Skill(msgspec.Struct, frozen=True, tag="skill", omit_defaults=True):
    """A skill that was offered to the model; its directory is not returned by the API."""

    name: str
    description: str = ""
    directory: str = ""


class Notice(msgspec.Struct, frozen=True, tag="notice", omit_defaults=True):
    """A notice of the installation to the reader; it is not sent to the model."""

    text: str
    hook_name: str = ""  # The hook that gave it; empty for one of the installation itself.
    event: str = ""  # The event that the hook answered.


class Fallback(msgspec.Struct, frozen=True, tag="fallback"):
    """Another model continues the turn; it is not sent to models."""

    failed_model_id: str
    model_id: str
    kind: str  # Of the error that the first one failed with.
    text: str


class HookContext(msgspec.Struct, frozen=True, tag="hook-context"):
    """What a hook adds for the model; it is not returned by the API."""

    event: str
    hook_name: str
    text: str


class ServerTexts(msgspec.Struct, frozen=True, tag="server-texts"):
    """The MCP servers of the workspace whose words were in the prompt of an answer.

    It is stored once for each server, for the judgement of later calls; it is neither sent to
    models nor returned by the API.
    """

    server_ids: tuple[str, ...]


class CallProgress(msgspec.Struct, frozen=True):
    """How far a running call is, in the unit of its tool."""

    progress: float
    total: float | None = None
    message: str = ""


class ToolResultDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """A live piece of the result of a running call; it is never stored.

    A reset comes before the text. The process and the progress replace earlier ones.
    """

    tool_call_id: str
    tool_name: str
    mcp_server_id: str = ""
    text: str = ""
    is_reset: bool = False
    process_id: str = ""
    progress: CallProgress | None = None


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
    | HookContext
    | ServerTexts
)
StreamedPart = Part | ToolResultDelta
#: What the answer of a hook adds to a chat: something for the model, or a notice for people.
HookAddition = HookContext | Notice
