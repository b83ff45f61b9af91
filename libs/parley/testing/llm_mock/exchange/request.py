"""The content of requests and replies, independent of the protocol."""

from collections.abc import Mapping
from dataclasses import dataclass

from parley.testing.llm_mock.behaviour.options import Stop


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as received; header names are in lower case, the path is decoded."""

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
        model: Name of the model, including its behaviour.
        is_streamed: Whether the answer is a stream.
        said: The last text of the user.
        tools: The tools that may be called now; empty if calls are disabled.
        rounds_done: Steps with calls since the last message of the user.
        output_tokens_max: The token limit of the answer.
        wants_usage: Whether the stream reports usage.
        is_stored: Whether the provider stores the answer.
        wants_encrypted: Whether reasoning is sent encrypted, to be sent back later.
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
    """The usage of the answer; input that is not given is estimated from the request.

    As with Anthropic, input excludes tokens read from a cache or written to one.
    """

    input: int | None
    output: int
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply, before it is encoded for a protocol."""

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
        """Return whether it has reasoning, with text or without."""
        return bool(self.thoughts) or self.is_redacted
