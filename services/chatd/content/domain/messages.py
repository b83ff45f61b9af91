"""Roles, visibility, finish reasons and errors of messages."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Visibility(StrEnum):
    """Who a message is for."""

    USER = "user"
    MODEL = "model"
    BOTH = "both"


class ErrorKind(StrEnum):
    """What kind of thing went wrong in a turn."""

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
    UNKNOWN = "unknown"


class FinishReason(StrEnum):
    """Why an answer ended where it does."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"  # It reached the limit for output tokens, or the end of the window.
    CONTENT_FILTER = "content_filter"
    PAUSED = "paused"  # Its provider executes tools for it, and wants to be asked to go on.
    INTERRUPTED = "interrupted"  # A user stopped it, or a new message took its place.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TurnError:
    """Why a turn failed, in words that are safe to show."""

    message: str
    kind: ErrorKind
    detail: str = ""
    provider: str = ""
    status_code: int = 0
    is_retryable: bool = False


class ChatMode(StrEnum):
    """A way of working that restricts the tools of a chat."""

    ORDINARY = ""
    PLAN = "plan"
    EXPLORE = "explore"
