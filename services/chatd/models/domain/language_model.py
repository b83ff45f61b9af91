"""The port to language models: a request, and a closed union of events.

The deltas are structs, not dataclasses: they are the most frequent events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from chatd.content.domain.messages import ErrorKind, FinishReason, TurnError
from chatd.content.domain.parts import Source, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class FileData:
    """A file with its bytes."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The complete request to a model."""

    model: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...]
    may_call_tools: bool = True  # If not, the tools are sent only for old calls.
    output_tokens_max: int | None = None
    reasoning_effort: str = ""
    files: Mapping[str, FileData] = field(default_factory=dict)  # By id; deleted ones are missing.
    chat_id: str = ""
    owner_id: str = ""
    attempt: int = 1  # The number of the attempt; beyond 1 the call is a retry.


class TextDelta(msgspec.Struct, frozen=True):
    """More text of the answer; another block id begins another part."""

    text: str
    block_id: str = ""


@dataclass(frozen=True, slots=True)
class TextEnded:
    """The open text is complete, with metadata to send back to its provider."""

    provider_metadata: str = ""


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More reasoning; another block id begins another part."""

    text: str
    block_id: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """The open reasoning is complete; if none is open, it is one without text."""

    provider_metadata: str = ""


class ToolInputDelta(msgspec.Struct, frozen=True):
    """More of the arguments of a call that is not complete yet."""

    tool_call_id: str
    tool_name: str
    args_delta: str


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """A complete tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class SourceCited:
    """A source that the answer cites."""

    source: Source


@dataclass(frozen=True, slots=True)
class ProviderToolResult:
    """The result of a call that the provider executed itself."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The usage of the call so far; the last one counts.

    Input tokens are those that were neither read from a cache nor written to one. Reasoning tokens
    are part of the output, unless the provider counts them separately.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_limit_tokens: int = 0  # Window reported by the provider; 0 if none.
    is_reasoning_apart: bool = False

    @property
    def written_tokens(self) -> int:
        """Return all output tokens, including reasoning."""
        return self.output_tokens + (self.reasoning_tokens if self.is_reasoning_apart else 0)


@dataclass(frozen=True, slots=True)
class RequestSent:
    """The prompt is being sent to the provider, which may charge for it from now on."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The provider sent data, but no content yet."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete; a stream that ends without this one failed."""

    reason: FinishReason = FinishReason.STOP
    detail: str = ""  # The provider's explanation of a refusal.


ModelEvent = (
    TextDelta
    | TextEnded
    | ReasoningDelta
    | ReasoningEnded
    | ToolInputDelta
    | ToolCallRequested
    | SourceCited
    | ProviderToolResult
    | UsageReported
    | RequestSent
    | Heartbeat
    | Finished
)

# Is called with the next event of an answer; must not block, as it runs in the network callback.
OnEvent = Callable[[ModelEvent], None]


class ModelError(Exception):
    """A model call failed; `message` is safe to show and says what to do."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        is_retryable: bool,
        retry_after_s: float | None = None,
        provider: str = "",
        status_code: int = 0,
        detail: str = "",
        is_unreachable: bool = False,
        is_breaker_open: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s
        self.provider = provider
        self.status_code = status_code
        self.detail = detail
        self.is_unreachable = is_unreachable  # No byte of an answer was received.
        self.is_breaker_open = is_breaker_open  # The call was not made.

    @property
    def turn_error(self) -> TurnError:
        """Return the error as the readers of a turn see it."""
        return TurnError(
            self.message,
            self.kind,
            detail=self.detail,
            provider=self.provider,
            status_code=self.status_code,
            is_retryable=self.is_retryable,
        )


class LanguageModel(Protocol):
    """A model that answers."""

    async def answer(self, request: ModelRequest, on_event: OnEvent) -> None:
        """Call the model and pass its events to `on_event` as they arrive, `Finished` last.

        An exception of `on_event` ends the call and is raised here.

        Raises:
            ModelError: The call failed, before or during the answer.
        """
        ...
