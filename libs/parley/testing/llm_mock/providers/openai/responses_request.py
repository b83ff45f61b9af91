"""The request of OpenAI Responses: its schema, and its conversion."""

import re
from typing import Any, Literal

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.parsing import Place, Typed, read_typed
from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition
from parley.testing.llm_mock.providers.openai.errors import bad_pattern, too_long

NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
NAME_LENGTH_MAX = 64
OUTPUT_TOKENS_MIN = 16
ROLES = ("assistant", "system", "developer", "user")
ENCRYPTED_REASONING = "reasoning.encrypted_content"

# `Any` marks fields that the mock does not parse; the provider's rules for them are not checked.


class Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An object that allows declared fields only."""


class Text(Strict, kw_only=True):
    """A text part."""

    type: str
    text: str
    annotations: Any = None
    logprobs: Any = None


class Image(Strict, kw_only=True):
    """An image part."""

    type: str
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


PARTS_IN: dict[str, type[msgspec.Struct]] = {
    "input_text": Text,
    "input_image": Image,
    "input_file": Typed,
    "input_audio": Typed,
}
PARTS_OUT: dict[str, type[msgspec.Struct]] = {"output_text": Text, "refusal": Typed}


class Message(Strict, kw_only=True):
    """A message of the user or of the model."""

    type: Literal["message"] = "message"
    role: str
    content: str | list[msgspec.Raw]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class FunctionCall(Strict, kw_only=True):
    """A tool call."""

    type: str
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None
    namespace: str | None = None


class FunctionOutput(Strict, kw_only=True):
    """The result of a tool call."""

    type: str
    call_id: str
    output: str | list[msgspec.Raw]
    id: str | None = None
    status: str | None = None


class Reasoning(Strict, kw_only=True):
    """A reasoning item, unchanged."""

    type: str
    id: str
    summary: list[Text]
    content: list[Text] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class Reference(Strict, kw_only=True):
    """A reference to an item that the provider stored."""

    type: str
    id: str


LOOSE = (
    "file_search_call", "computer_call", "computer_call_output", "web_search_call",
    "tool_search_call", "tool_search_output", "compaction", "image_generation_call",
    "code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call",
    "shell_call_output", "apply_patch_call", "apply_patch_call_output", "mcp_list_tools",
    "mcp_approval_request", "mcp_approval_response", "mcp_call", "custom_tool_call",
    "custom_tool_call_output",
)  # fmt: skip
ITEMS: dict[str, type[msgspec.Struct]] = {
    "message": Message,
    "function_call": FunctionCall,
    "function_call_output": FunctionOutput,
    "reasoning": Reasoning,
    "item_reference": Reference,
    **dict.fromkeys(LOOSE, Typed),
}


class Tool(msgspec.Struct, kw_only=True):
    """A tool of the caller or of the provider."""

    type: str
    name: str = ""
    parameters: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class Effort(msgspec.Struct, kw_only=True):
    """The reasoning effort, and the form of its summary."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class Body(Strict, kw_only=True):
    """The whole body."""

    model: str
    input: str | list[msgspec.Raw]
    stream: bool | None = False
    store: bool | None = True
    include: list[str] | None = None
    tools: list[Tool] | None = None
    tool_choice: Any = None
    reasoning: Effort | None = None
    max_output_tokens: int | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    background: Any = None
    context_management: Any = None
    conversation: Any = None
    max_tool_calls: Any = None
    metadata: Any = None
    moderation: Any = None
    prompt: Any = None
    prompt_cache_key: Any = None
    prompt_cache_options: Any = None
    prompt_cache_retention: Any = None
    safety_identifier: Any = None
    service_tier: Any = None
    stream_options: Any = None
    text: Any = None
    top_logprobs: Any = None
    truncation: Any = None
    user: Any = None


def items_of(body: Body) -> tuple[msgspec.Struct, ...]:
    """Return the parsed items of the input.

    Raises:
        ParseError: an item is invalid.
    """
    if isinstance(body.input, str):
        return (Message(role="user", content=body.input),)
    items = []
    for index, raw in enumerate(body.input):
        place = Place(("input", index))
        item = read_typed(raw, ITEMS, place, usual="message")
        if isinstance(item, Message) and isinstance(item.content, list):
            kinds = PARTS_OUT if item.role == "assistant" else PARTS_IN
            for number, part in enumerate(item.content):
                read_typed(part, kinds, place / "content" / number)
        items.append(item)
    return tuple(items)


def check(body: Body, items: tuple[msgspec.Struct, ...]) -> None:
    """Refuse settings and tools that the provider refuses.

    Raises:
        Refused: with the provider's message.
    """
    if not items:
        raise Refused(
            400,
            "Invalid 'input': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            param="input",
            code="empty_array",
        )
    if body.max_output_tokens is not None and body.max_output_tokens < OUTPUT_TOKENS_MIN:
        raise Refused(
            400,
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
            f"{OUTPUT_TOKENS_MIN}, but got {body.max_output_tokens} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    if body.previous_response_id is not None:
        raise Refused(
            400,
            f"Previous response with id '{body.previous_response_id}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    for index, item in enumerate(items):
        if isinstance(item, Message) and item.role not in ROLES:
            known = ", ".join(f"'{role}'" for role in ROLES)
            raise Refused(
                400,
                f"Invalid value: '{item.role}'. Supported values are: {known}.",
                param=f"input[{index}].role",
                code="invalid_value",
            )
    for index, tool in enumerate(body.tools or ()):
        _check_tool(tool, index)


def _check_tool(tool: Tool, index: int) -> None:
    if tool.type != "function":
        return
    param = f"tools[{index}].name"
    if not tool.name:
        raise Refused(
            400,
            f"Missing required parameter: '{param}'.",
            param=param,
            code="missing_required_parameter",
        )
    if not re.fullmatch(NAME_PATTERN, tool.name):
        raise bad_pattern(param, NAME_PATTERN)
    if len(tool.name) > NAME_LENGTH_MAX:
        raise too_long(param, tool.name, NAME_LENGTH_MAX)


def parsed_request_of(body: Body, items: tuple[msgspec.Struct, ...]) -> ParsedRequest:
    """Return a valid request as a `ParsedRequest`."""
    mine = [tool for tool in body.tools or () if tool.type == "function"]
    match body.tool_choice:
        case "none":
            mine = []
        case {"name": str(name)}:
            mine.sort(key=lambda tool: tool.name != name)
    said, rounds = _turn(items)
    return ParsedRequest(
        model=body.model,
        is_streamed=bool(body.stream),
        said=said,
        tools=tuple(ToolDefinition(tool.name, tool.parameters) for tool in mine),
        rounds_done=rounds,
        output_tokens_max=body.max_output_tokens,
        is_stored=body.store is not False,
        wants_encrypted=ENCRYPTED_REASONING in (body.include or ()),
    )


def _turn(items: tuple[msgspec.Struct, ...]) -> tuple[str, int]:
    """Return the last text of the user, and the number of steps with calls after it."""
    rounds, is_result = 0, False
    for item in reversed(items):
        if isinstance(item, Message) and item.role == "user":
            return _words(item), rounds
        rounds += isinstance(item, FunctionOutput) and not is_result
        is_result = isinstance(item, FunctionOutput)
    return "", rounds


def _words(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = [read_typed(raw, PARTS_IN, Place()) for raw in message.content]
    return "\n".join(part.text for part in parts if isinstance(part, Text))
