"""The request of OpenAI Chat Completions: its schema, and its conversion."""

from typing import Any, Literal

import msgspec

from parley.testing.llm_mock.exchange.parsing import Place, Typed, read_typed
from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition

# `Any` marks fields that the mock does not parse; the provider's rules for them are not checked.


class Text(msgspec.Struct, kw_only=True):
    """A text part."""

    type: str
    text: str


class ImageUrl(msgspec.Struct, kw_only=True):
    """The URL of an image."""

    url: str
    detail: str | None = None


class Image(msgspec.Struct, kw_only=True):
    """An image part."""

    type: str
    image_url: ImageUrl


PARTS: dict[str, dict[str, type[msgspec.Struct]]] = {
    "user": {"text": Text, "image_url": Image, "input_audio": Typed, "file": Typed},
    "assistant": {"text": Text, "refusal": Typed},
}
TEXT_ONLY: dict[str, type[msgspec.Struct]] = {"text": Text}


class CalledFunction(msgspec.Struct, kw_only=True):
    """The called function and its arguments."""

    name: str
    arguments: str


class Call(msgspec.Struct, kw_only=True):
    """A tool call."""

    id: str
    type: Literal["function", "custom"] = "function"
    function: CalledFunction | None = None


class Message(msgspec.Struct, kw_only=True):
    """One message; compatible endpoints add further fields, which OpenAI ignores."""

    role: str
    content: str | list[msgspec.Raw] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class Function(msgspec.Struct, kw_only=True):
    """The function of a tool."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, kw_only=True):
    """A tool."""

    type: Literal["function", "custom"]
    function: Function | None = None


class StreamOptions(msgspec.Struct, kw_only=True):
    """Options of the stream."""

    include_usage: bool = False


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body, including fields of common compatible endpoints."""

    model: str = ""
    messages: list[Message]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    stop: Any = None
    seed: int | None = None
    user: str | None = None
    reasoning_effort: str | None = None
    response_format: Any = None
    audio: Any = None
    frequency_penalty: Any = None
    logit_bias: Any = None
    logprobs: Any = None
    metadata: Any = None
    modalities: Any = None
    moderation: Any = None
    prediction: Any = None
    presence_penalty: Any = None
    prompt_cache_key: Any = None
    prompt_cache_options: Any = None
    prompt_cache_retention: Any = None
    safety_identifier: Any = None
    service_tier: Any = None
    store: Any = None
    top_logprobs: Any = None
    verbosity: Any = None
    web_search_options: Any = None
    chat_template_kwargs: Any = None
    models: Any = None
    plugins: Any = None
    provider: Any = None
    reasoning: Any = None
    thinking: Any = None
    top_k: Any = None
    usage: Any = None


def parsed_request_of(body: Body) -> ParsedRequest:
    """Return a valid request as a `ParsedRequest`."""
    functions = [tool.function for tool in body.tools or () if tool.function is not None]
    match body.tool_choice:
        case "none":
            functions = []
        case {"function": {"name": str(name)}}:
            functions.sort(key=lambda function: function.name != name)
    said, rounds = _turn(body.messages)
    length_max = body.max_completion_tokens
    return ParsedRequest(
        model=body.model,
        is_streamed=bool(body.stream),
        said=said,
        tools=tuple(ToolDefinition(each.name, each.parameters) for each in functions),
        rounds_done=rounds,
        output_tokens_max=body.max_tokens if length_max is None else length_max,
        wants_usage=body.stream_options is not None and body.stream_options.include_usage,
    )


def _turn(messages: list[Message]) -> tuple[str, int]:
    """Return the last text of the user, and the number of steps with calls after it."""
    rounds = 0
    for message in reversed(messages):
        if message.role == "user":
            return _words(message), rounds
        rounds += bool(message.tool_calls)
    return "", rounds


def _words(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    found = []
    for number, raw in enumerate(message.content or ()):
        part = read_typed(raw, PARTS["user"], Place(("content", number)))
        if isinstance(part, Text):
            found.append(part.text)
    return "\n".join(found)
