"""The request of Anthropic Messages: its schema, and its conversion."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.parsing import (
    ParseError,
    ParseErrorKind,
    Place,
    Typed,
    read,
    read_typed,
)
from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition

#: Versions are dates; Bedrock has one of its own besides Anthropic's.
VERSION_PATTERN = r"^(bedrock-)?\d{4}-\d\d-\d\d$"

# `Any` marks fields that the mock does not parse; the provider's rules for them are not checked.


class Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An object that allows declared fields only."""


class CacheControl(Strict, kw_only=True):
    """The end of the part of the prompt that is to be cached."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class Block(Strict, kw_only=True):
    """A content block."""

    type: str
    cache_control: CacheControl | None = None


class Text(Block, kw_only=True):
    """A text block."""

    text: str
    citations: Any = None


class Source(msgspec.Struct, kw_only=True):
    """The source of a file's bytes."""

    type: Literal["base64", "url", "text", "content", "file"]
    media_type: str = ""
    data: str = ""


class Image(Block, kw_only=True):
    """An image block."""

    source: Source
    transformations: Any = None


class Document(Block, kw_only=True):
    """A document block."""

    source: Source
    title: str | None = None
    context: str | None = None
    citations: Any = None


class Thinking(Strict, kw_only=True):
    """A thinking block with its signature."""

    type: str
    thinking: str
    signature: str


class RedactedThinking(Strict, kw_only=True):
    """An encrypted thinking block."""

    type: str
    data: str


class ToolUse(Block, kw_only=True):
    """A tool call."""

    id: str
    name: str
    input: dict[str, Any]
    caller: Any = None


class ToolResult(Block, kw_only=True):
    """The result of a tool call."""

    tool_use_id: str
    content: str | list[msgspec.Raw] | None = None
    is_error: bool | None = None


RESULT_BLOCKS: dict[str, type[msgspec.Struct]] = {
    "text": Text,
    "image": Image,
    "document": Document,
    "search_result": Typed,
}
BLOCKS: dict[str, type[msgspec.Struct]] = {
    **RESULT_BLOCKS,
    "thinking": Thinking,
    "redacted_thinking": RedactedThinking,
    "tool_use": ToolUse,
    "tool_result": ToolResult,
    "server_tool_use": Typed,
    "web_search_tool_result": Typed,
    "web_fetch_tool_result": Typed,
    "code_execution_tool_result": Typed,
    "bash_code_execution_tool_result": Typed,
    "text_editor_code_execution_tool_result": Typed,
    "tool_search_tool_result": Typed,
    "mcp_tool_use": Typed,
    "mcp_tool_result": Typed,
    "container_upload": Typed,
    "compaction": Typed,
}


class Message(Strict, kw_only=True):
    """One message as received."""

    role: str
    content: str | list[msgspec.Raw]


class Tool(msgspec.Struct, kw_only=True):
    """A tool of the caller or of the provider."""

    type: str = "custom"
    name: str = ""
    input_schema: dict[str, Any] | None = None
    cache_control: CacheControl | None = None


class Choice(msgspec.Struct, kw_only=True):
    """Which tools may be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str = ""


class ThinkingOptions(msgspec.Struct, kw_only=True):
    """Whether thinking is enabled, and its budget."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None


class Prompt(Strict, kw_only=True):
    """The fields of every body, including those of betas."""

    messages: list[Message]
    max_tokens: int
    system: str | list[Text] | None = None
    tools: list[Tool] | None = None
    tool_choice: Choice | None = None
    thinking: ThinkingOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    metadata: Any = None
    service_tier: str | None = None
    cache_control: CacheControl | None = None
    container: Any = None
    context_management: Any = None
    inference_geo: Any = None
    mcp_servers: Any = None
    output_config: Any = None
    output_format: Any = None


class Body(Prompt, kw_only=True):
    """The whole body."""

    model: str
    stream: bool = False


class BedrockBody(Prompt, kw_only=True):
    """The body of Bedrock: the model and the choice of streaming are in the path."""

    anthropic_version: Annotated[str, msgspec.Meta(pattern=VERSION_PATTERN)]
    anthropic_beta: list[str] | None = None


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message with parsed blocks."""

    role: str
    blocks: tuple[msgspec.Struct, ...]


def refusal_of(error: ParseError) -> Refused:
    """Return the refusal with Anthropic's message."""
    if error.wrong is ParseErrorKind.NOT_JSON:
        return Refused(400, f"The request body is not valid JSON: {error.text}")
    return Refused(400, f"{error.place.dotted()}: {error.text}")


def messages_of(body: Prompt) -> tuple[ParsedMessage, ...]:
    """Return the messages with parsed blocks.

    Raises:
        ParseError: a block is invalid.
    """
    found = []
    for index, message in enumerate(body.messages):
        place = Place(("messages", index, "content"))
        found.append(ParsedMessage(message.role, _blocks(message.content, place)))
    return tuple(found)


def parsed_request_of(
    body: Prompt, said: tuple[ParsedMessage, ...], model: str, *, is_streamed: bool
) -> ParsedRequest:
    """Return a valid request as a `ParsedRequest`."""
    mine = [tool for tool in body.tools or () if tool.input_schema is not None]
    choice = body.tool_choice
    if choice is not None and choice.type == "none":
        mine = []
    elif choice is not None and choice.type == "tool":
        mine.sort(key=lambda tool: tool.name != choice.name)
    spoken, rounds = _turn(said)
    return ParsedRequest(
        model=model,
        is_streamed=is_streamed,
        said=spoken,
        tools=tuple(ToolDefinition(tool.name, tool.input_schema) for tool in mine),
        rounds_done=rounds,
        output_tokens_max=body.max_tokens,
    )


def _blocks(content: str | list[msgspec.Raw], place: Place) -> tuple[msgspec.Struct, ...]:
    if isinstance(content, str):
        return (Text(type="text", text=content),)
    blocks = tuple(read_typed(raw, BLOCKS, place / n) for n, raw in enumerate(content))
    for number, block in enumerate(blocks):
        if isinstance(block, ToolResult) and isinstance(block.content, list):
            for inner, raw in enumerate(block.content):
                read_typed(raw, RESULT_BLOCKS, place / number / "content" / inner)
    return blocks


def _turn(said: tuple[ParsedMessage, ...]) -> tuple[str, int]:
    """Return the last text of the user, and the number of steps with calls after it."""
    rounds = 0
    for message in reversed(said):
        words = [block.text for block in message.blocks if isinstance(block, Text)]
        if message.role == "user" and words:
            return "\n".join(words), rounds
        rounds += any(isinstance(block, ToolUse) for block in message.blocks)
    return "", rounds


def read_body(data: bytes) -> Body:
    """Parse the body of a request to Anthropic itself."""
    return read(data, Body)


def read_bedrock_body(data: bytes) -> BedrockBody:
    """Parse the body of a request to Bedrock."""
    return read(data, BedrockBody)
