"""The language model as the engine sees it: a request out, a closed union of events in.

The deltas are structs, not dataclasses: one is made for nearly everything that a model sends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from chatd.content.domain.messages import ErrorKind, FinishReason, Role, TurnError
from chatd.content.domain.parts import Part, Source, ToolCall, ToolResult
from chatd.content.domain.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message as a model reads it: complete, without what only people see."""

    role: Role
    content: tuple[Part, ...]
    model_id: str = ""  # Model that wrote it; empty for what no model wrote.


@dataclass(frozen=True, slots=True)
class FileData:
    """A file with its bytes."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """All that a model is asked with."""

    model: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...]
    may_call_tools: bool = True  # When not, the tools are there only to make old calls readable.
    output_tokens_max: int | None = None
    reasoning_effort: str = ""
    files: Mapping[str, FileData] = field(default_factory=dict)  # By id; one that is gone is not.
    chat_id: str = ""
    owner_id: str = ""
    attempt: int = 1  # How often this history was tried; beyond 1 the call is a repetition.


class TextDelta(msgspec.Struct, frozen=True):
    """More text of the answer; another block id begins another part."""

    text: str
    block_id: str = ""


@dataclass(frozen=True, slots=True)
class TextEnded:
    """The open text is complete; this is what its provider wants back with it."""

    provider_metadata: str = ""


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of what the model thinks; another block id begins another part."""

    text: str
    block_id: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """The open thought is complete; without one open, a thought that came without words."""

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
    """Something that the answer refers to."""

    source: Source


@dataclass(frozen=True, slots=True)
class ProviderToolResult:
    """The result of a call that the provider executed itself."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What the call used so far; the last one counts.

    Input tokens are those that were neither read from a cache nor written to one. Reasoning tokens
    are part of the output, unless the provider counts them apart.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_limit_tokens: int = 0  # Window that the provider names; 0 when it names none.
    is_reasoning_apart: bool = False

    @property
    def written_tokens(self) -> int:
        """Return all that the model wrote, its thoughts included."""
        return self.output_tokens + (self.reasoning_tokens if self.is_reasoning_apart else 0)


@dataclass(frozen=True, slots=True)
class RequestSent:
    """The provider is being sent the prompt, which it may want money for from now on."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The provider is alive, but has nothing to say yet."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete; a stream that ends without this one failed."""

    reason: FinishReason = FinishReason.STOP
    detail: str = ""  # What the provider says of a refusal.


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

# Takes the next event of an answer; it must not wait, for it runs where the bytes arrive.
OnEvent = Callable[[ModelEvent], None]


class ModelError(Exception):
    """A call of a model failed; `message` is safe to show and says what to do."""

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
        self.is_unreachable = is_unreachable  # No byte of an answer came.
        self.is_breaker_open = is_breaker_open  # The call was not made.

    @property
    def turn_error(self) -> TurnError:
        """Return the same as what the readers of a turn see."""
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
        """Ask, and give what comes back to `on_event` as it comes, `Finished` last.

        What `on_event` raises ends the call and comes out here.

        Raises:
            ModelError: the call failed, at any place of the answer.
        """
        ...
