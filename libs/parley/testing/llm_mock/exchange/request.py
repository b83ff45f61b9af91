"""What a request asks, whichever protocol it came in, and what is answered to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from parley.testing.llm_mock.behaviour.options import Stop


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as it arrived; header names are in lower case, the path is decoded."""

    method: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that may be called, and the JSON schema of its arguments."""

    name: str
    schema: object


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A valid request.

    Attributes:
        model: Name of the model, behaviour and all.
        is_streamed: Whether events are wanted.
        said: What the user said last.
        tools: What may be called now; nothing if calls are not wanted.
        rounds_done: Steps with calls since the user spoke.
        output_tokens_max: Length that the answer may have.
        wants_usage: Whether the stream is to report usage.
        is_stored: Whether the provider is to keep the answer.
        wants_encrypted: Whether thoughts are to be sent sealed, to be given back later.
    """

    model: str
    is_streamed: bool
    said: str
    tools: tuple[ToolDefinition, ...] = ()
    rounds_done: int = 0
    output_tokens_max: int | None = None
    wants_usage: bool = True
    is_stored: bool = False
    wants_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; calls of the same number have the same id."""

    name: str
    args: str
    number: int
    has_id: bool = True


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the answer used; input that is not given is estimated from the request.

    As with Anthropic, input is what was neither read from a cache nor written to one.
    """

    input: int | None
    output: int
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered, before it is put into the words of a protocol."""

    model: str
    thoughts: tuple[str, ...]
    is_redacted: bool
    text: tuple[str, ...]
    calls: tuple[Call, ...]
    stop: Stop
    tokens: Tokens | None
    reasoning_field: str
    has_index: bool
    has_done: bool
    args_size: int
    wants_usage: bool
    wants_encrypted: bool

    @property
    def is_reasoned(self) -> bool:
        """Return whether thoughts are part of it, with words or without."""
        return bool(self.thoughts) or self.is_redacted
