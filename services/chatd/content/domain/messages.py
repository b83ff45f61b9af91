"""Roles, origins, visibility, finish reasons and errors of messages."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageOrigin(StrEnum):
    """The sender of a message with the role of the user."""

    PERSON = "person"  # With a session or an API key.
    PROGRAM = "program"  # With a service token.
    GOAL = "goal"
    MONITOR = "monitor"
    SCHEDULE = "schedule"
    HOOK = "hook"  # It lets a turn go on, or adds to it.
    AGENT = "agent"  # The model of the parent chat, to its agent.
    SYSTEM = "system"  # The installation itself, such as a summary.


#: Origins of the messages that callers of the API send; the others are sent by this service.
SENT_BY_CALLERS: Final = frozenset({MessageOrigin.PERSON, MessageOrigin.PROGRAM})


class Visibility(StrEnum):
    """Whether users, the model or both see a message."""

    USER = "user"
    MODEL = "model"
    BOTH = "both"


class ErrorKind(StrEnum):
    """The kind of an error in a turn."""

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
    UNKNOWN = "unknown"


class FinishReason(StrEnum):
    """The reason why an answer ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"  # The output token limit or the context window was reached.
    CONTENT_FILTER = "content_filter"
    PAUSED = "paused"  # The provider executes tools and expects a request to continue.
    INTERRUPTED = "interrupted"  # A user stopped it, or a new message replaced it.
    OTHER = "other"


#: Answers that ended so are not complete.
CUT = frozenset({FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.INTERRUPTED})


def cut_field(reason: FinishReason | None) -> dict[str, object]:
    """Return the field `cut` of a result that has an answer; none if the answer is complete."""
    return {"cut": reason.value} if reason is not None and reason in CUT else {}


@dataclass(frozen=True, slots=True)
class TurnError:
    """Why a turn failed, in a message that is safe to show to users.

    Attributes:
        message: One sentence for people.
        kind: What kind of thing went wrong.
        detail: More of it.
        provider: The provider that failed, as configured.
        status_code: The HTTP status of the provider.
        is_retryable: Whether trying again may help.
        attempts: How many attempts failed before the turn ended; 0 if no call of a model failed.
    """

    message: str
    kind: ErrorKind
    detail: str = ""
    provider: str = ""
    status_code: int = 0
    is_retryable: bool = False
    attempts: int = 0


class ChatMode(StrEnum):
    """A mode that restricts the tools of a chat."""

    ORDINARY = ""
    PLAN = "plan"
    EXPLORE = "explore"


def strictest(*modes: ChatMode) -> ChatMode:
    """Return the mode that allows the least: exploring offers fewer tools than planning."""
    return max(modes, key=tuple(ChatMode).index)
