"""Chats and messages, as values for callers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from parley.client.actions import Action
from parley.client.parts import Part, Text, UserPart

Content = str | Sequence[UserPart]  # Plain text is one part.


class ChatStatus(StrEnum):
    """The execution status of a chat."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTING = "interrupting"
    REQUIRES_ACTION = "requires_action"
    ERROR = "error"


class Role(StrEnum):
    """The author of a message."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Why an answer ended."""

    UNSPECIFIED = "unspecified"  # No model wrote it, it is old, or the value is newer than this.
    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    OTHER = "other"


class MessageOrigin(StrEnum):
    """Who sent a message with the role of the user."""

    UNSPECIFIED = "unspecified"  # It has another role, or the value is newer than this client.
    PERSON = "person"
    PROGRAM = "program"
    GOAL = "goal"
    MONITOR = "monitor"
    SCHEDULE = "schedule"
    HOOK = "hook"
    AGENT = "agent"
    SYSTEM = "system"


class ErrorKind(StrEnum):
    """The kind of error that ended a turn."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    GENERIC = "generic"
    OVERLOADED = "overloaded"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    STARTUP_TIMEOUT = "startup_timeout"
    STREAM_SILENCE_TIMEOUT = "stream_silence_timeout"
    AUTH = "auth"
    CONFIG = "config"
    USAGE_LIMIT = "usage_limit"
    MISSING_KEY = "missing_key"
    PROVIDER_DISABLED = "provider_disabled"
    MODEL_UNAVAILABLE = "model_unavailable"
    CONTENT_FILTER = "content_filter"
    CONTEXT_OVERFLOW = "context_overflow"
    CRASH_LOOP = "crash_loop"
    HOOK_DISPATCH_FAILED = "hook_dispatch_failed"
    HOOK_DENIED = "hook_denied"
    UNKNOWN = "unknown"  # The outcome cannot be determined.


@dataclass(frozen=True, slots=True)
class TurnError:
    """Why a turn failed.

    Attributes:
        kind: The kind of error, for programs.
        message: One sentence for people.
        detail: Further details; may be empty.
        provider: The provider that failed; empty if none was involved.
        is_retryable: Whether a retry may help.
    """

    kind: ErrorKind
    message: str
    detail: str = ""
    provider: str = ""
    is_retryable: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of one model call; the cost is None when no price is known and 0 when free.

    Attributes:
        is_estimate: Whether the provider did not report all of it.
        is_fallback: Whether the fallback model answered.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_limit_tokens: int = 0
    cost_micros: int | None = None
    is_estimate: bool = False
    is_fallback: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A committed message.

    Attributes:
        id: Its number in the chat, from 1.
        chat_id: The chat it belongs to.
        role: The author.
        content: Its parts, without kinds of parts newer than this client.
        revision: The snapshot of the chat at which it last changed.
        created_by: The user who sent it; empty for the model's.
        model_id: The model that produced it or was requested; may be empty.
        created_at: When it was committed.
        usage: The usage of its model call; assistant messages only.
        is_compressed: Whether it belongs to a compaction rather than to the conversation.
        finish_reason: Why the answer ended; assistant messages only.
        origin: Who sent it; user messages only.
    """

    id: int
    chat_id: str
    role: Role
    content: tuple[Part, ...]
    revision: int = 0
    created_by: str = ""
    model_id: str = ""
    created_at: datetime | None = None
    usage: Usage | None = None
    is_compressed: bool = False
    finish_reason: FinishReason = FinishReason.UNSPECIFIED
    origin: MessageOrigin = MessageOrigin.UNSPECIFIED

    @property
    def text(self) -> str:
        """Its text parts, concatenated."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message in the queue."""

    id: str
    content: tuple[Part, ...]
    created_by: str = ""
    created_at: datetime | None = None
    origin: MessageOrigin = MessageOrigin.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that the caller executes itself, declared when a chat is created.

    Attributes:
        name: 1 to 64 letters, digits, `_` and `-`; unique in the chat.
        description: What it does, for the model.
        input_schema: The JSON Schema of its arguments, which are one object.
    """

    name: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RequiredCall:
    """A call of a client tool that the caller has to execute."""

    tool_call_id: str
    tool_name: str
    args_json: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as Python values."""
        decoded: dict[str, Any] = json.loads(self.args_json)
        return decoded


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """What a chat waits for; the first of it expires at `deadline_at`.

    Attributes:
        calls: The calls of client tools.
        actions: Everything that it waits for, these calls included.
    """

    calls: tuple[RequiredCall, ...]
    deadline_at: datetime | None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat, as its readers see it.

    Attributes:
        id: A UUID.
        owner_id: The user whose credentials its turns spend.
        title: Its title.
        status: Its execution status.
        snapshot_version: Grows with every change to its execution.
        is_archived: Whether it is archived.
        last_error: Why the last turn failed; None unless the status is error.
        required_action: What it waits for; None in lists and in any other status.
        queue_length: Number of queued messages.
        place_in_line: Position in the queue for a worker, from 1; 0 when it does not wait for one.
        model_id: The model of the last message that named one; may be empty.
        workspace_id: The workspace its tools use; may be empty.
        labels: Its labels.
        created_at: When it was created.
        updated_at: When its execution last changed.
    """

    id: str
    owner_id: str
    title: str
    status: ChatStatus
    snapshot_version: int = 0
    is_archived: bool = False
    last_error: TurnError | None = None
    required_action: RequiredAction | None = None
    queue_length: int = 0
    place_in_line: int = 0
    model_id: str = ""
    workspace_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The options of a new chat besides its first message; empty ones are set by the server.

    Attributes:
        mcp_server_ids: The MCP servers to use; None for those that are on by default.
        is_planning: Whether it begins in plan mode.
        is_unattended: Whether nobody will answer its questions: they are refused instead.
    """

    title: str = ""
    model_id: str = ""
    workspace_id: str = ""
    mcp_server_ids: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    system_prompt: str = ""
    client_tools: tuple[ClientTool, ...] = ()
    is_planning: bool = False
    is_unattended: bool = False


@dataclass(frozen=True, slots=True)
class ChatPage:
    """A page of chats; `next_page_token` is empty at the end."""

    chats: tuple[Chat, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A page of history, newest first unless only `after_id` was given.

    Attributes:
        messages: The messages.
        has_more: Whether there are more in that direction.
        queued: The queue; only on the page without bounds.
    """

    messages: tuple[Message, ...]
    has_more: bool = False
    queued: tuple[QueuedMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class SentMessage:
    """The result of sending a message.

    Attributes:
        chat: The chat after it.
        message: The message, if it was added to the history.
        queued: The queue entry, if it was queued.
        is_replay: Whether this is the stored result of an earlier request with the same id.
    """

    chat: Chat
    message: Message | None = None
    queued: QueuedMessage | None = None
    is_replay: bool = False
