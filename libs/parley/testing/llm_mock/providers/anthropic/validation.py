"""Anthropic's validation of requests that match the schema."""

import re
from collections.abc import Iterator

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.providers.anthropic.encoding import is_own_data, is_own_signature
from parley.testing.llm_mock.providers.anthropic.request import (
    Block,
    Document,
    Image,
    ParsedMessage,
    Prompt,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

ID_PATTERN = "^[a-zA-Z0-9_-]+$"
NAME_PATTERN = "^[a-zA-Z0-9_-]{1,128}$"
CACHE_MARKS_MAX = 4
THINKING_TOKENS_MIN = 1024
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
EMPTY = "messages: text content blocks must be non-empty"
BLANK = "messages: text content blocks must contain non-whitespace text"


def check(body: Prompt, said: tuple[ParsedMessage, ...]) -> None:
    """Refuse a request that the provider refuses.

    Raises:
        Refused: with the provider's message.
    """
    _check_order(said)
    _check_settings(body)
    for index, message in enumerate(said):
        _check_message(message, index, is_last=index == len(said) - 1)
    _check_calls(said)
    _check_tools(body)
    _check_marks(body, said)


def _check_order(said: tuple[ParsedMessage, ...]) -> None:
    if not said:
        raise Refused(400, "messages: at least one message is required")
    for index, message in enumerate(said):
        if message.role == "system":
            raise Refused(
                400,
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
                'parameter, not "system" as an input message role.',
            )
        if message.role not in ("user", "assistant"):
            raise Refused(400, f"messages.{index}.role: Input should be 'user' or 'assistant'")
    if said[0].role != "user":
        raise Refused(400, 'messages: first message must use the "user" role')


def _check_settings(body: Prompt) -> None:
    if body.max_tokens < 1:
        raise Refused(400, "max_tokens: Input should be greater than or equal to 1")
    if isinstance(body.system, list):
        for index, block in enumerate(body.system):
            if not block.text:
                raise Refused(400, "system: text content blocks must be non-empty")
            if block.type != "text":
                raise Refused(400, f"system.{index}.type: Input should be 'text'")
    thinking = body.thinking
    if thinking is None or thinking.type == "disabled":
        return
    if thinking.type == "enabled":
        budget = thinking.budget_tokens
        if budget is None:
            raise Refused(400, "thinking.enabled.budget_tokens: Field required")
        if budget < THINKING_TOKENS_MIN:
            raise Refused(
                400,
                "thinking.enabled.budget_tokens: Input should be greater than or equal to "
                f"{THINKING_TOKENS_MIN}",
            )
        if budget >= body.max_tokens:
            raise Refused(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.temperature not in (None, 1):
        raise Refused(400, "`temperature` may only be set to 1 when thinking is enabled.")
    if body.tool_choice is not None and body.tool_choice.type in ("any", "tool"):
        raise Refused(400, "Thinking may not be enabled when tool_choice forces tool use.")


def _check_message(message: ParsedMessage, index: int, *, is_last: bool) -> None:
    if not message.blocks and not (is_last and message.role == "assistant"):
        raise Refused(
            400,
            f"messages.{index}: all messages must have non-empty content except for the optional "
            "final assistant message",
        )
    for number, block in enumerate(message.blocks):
        _check_block(block, message.role, f"messages.{index}.content.{number}")
    last = message.blocks[-1] if is_last and message.blocks else None
    if isinstance(last, Text) and message.role == "assistant" and last.text[-1:].isspace():
        raise Refused(400, "messages: final assistant content cannot end with trailing whitespace")


def _check_block(block: msgspec.Struct, role: str, place: str) -> None:
    match block:
        case Text(text=""):
            raise Refused(400, EMPTY)
        case Text() if not block.text.strip():
            raise Refused(400, BLANK)
        case Thinking() | RedactedThinking() | ToolUse() if role != "assistant":
            raise Refused(
                400, f"{place}: `{block.type}` blocks can only be in `assistant` messages"
            )
        case ToolResult() if role != "user":
            raise Refused(400, f"{place}: `tool_result` blocks can only be in `user` messages")
        case Thinking() if not is_own_signature(block.thinking, block.signature):
            raise Refused(400, f"{place}: Invalid `signature` in `thinking` block")
        case RedactedThinking() if not is_own_data(block.data):
            raise Refused(400, f"{place}: Invalid `data` in `redacted_thinking` block")
        case ToolUse() if not re.fullmatch(ID_PATTERN, block.id):
            raise Refused(400, f"{place}.tool_use.id: String should match pattern '{ID_PATTERN}'")
        case ToolUse() if not re.fullmatch(NAME_PATTERN, block.name):
            raise Refused(
                400, f"{place}.tool_use.name: String should match pattern '{NAME_PATTERN}'"
            )
        case Image() if block.source.type == "base64" and (
            block.source.media_type not in IMAGE_TYPES or not block.source.data
        ):
            raise Refused(
                400, f"{place}.image.source.base64.media_type: Input should be one of {IMAGE_TYPES}"
            )
        case Document() if block.source.type == "base64" and (
            block.source.media_type != "application/pdf" or not block.source.data
        ):
            raise Refused(
                400,
                f"{place}.document.source.base64.media_type: Input should be 'application/pdf'",
            )


def _check_calls(said: tuple[ParsedMessage, ...]) -> None:
    """Refuse calls without results directly after them, and results without calls before them."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for index, message in enumerate(_merged(said)):
        leading = _leading_results(message)
        if unanswered := [call_id for call_id in open_ids if call_id not in leading]:
            raise Refused(
                400,
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(unanswered)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message.",
            )
        for number, block in enumerate(message.blocks):
            if isinstance(block, ToolResult) and block.tool_use_id not in open_ids:
                raise Refused(
                    400,
                    f"messages.{index}.content.{number}: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {block.tool_use_id}. Each `tool_result` block must "
                    "have a corresponding `tool_use` block in the previous message.",
                )
        if len(set(leading)) != len(leading):
            raise Refused(
                400, f"messages.{index}: each tool_use must have a single result. Found multiple."
            )
        open_ids = [block.id for block in message.blocks if isinstance(block, ToolUse)]
        if len({*open_ids}) != len(open_ids) or seen & {*open_ids}:
            raise Refused(400, f"messages.{index}: `tool_use` ids must be unique")
        seen.update(open_ids)
    if open_ids:
        raise Refused(
            400,
            f"messages.{len(said)}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(open_ids)}.",
        )


def _merged(said: tuple[ParsedMessage, ...]) -> Iterator[ParsedMessage]:
    """Yield the messages; consecutive ones of one role are merged, as the provider does."""
    held: ParsedMessage | None = None
    for message in said:
        if held is not None and held.role == message.role:
            held = ParsedMessage(held.role, held.blocks + message.blocks)
            continue
        if held is not None:
            yield held
        held = message
    if held is not None:
        yield held


def _leading_results(message: ParsedMessage) -> list[str]:
    found = []
    for block in message.blocks:
        if not isinstance(block, ToolResult):
            break
        found.append(block.tool_use_id)
    return found


def _check_tools(body: Prompt) -> None:
    names = []
    for index, tool in enumerate(body.tools or ()):
        if tool.type != "custom":
            continue
        if not re.fullmatch(NAME_PATTERN, tool.name):
            raise Refused(
                400, f"tools.{index}.custom.name: String should match pattern '{NAME_PATTERN}'"
            )
        if tool.input_schema is None:
            raise Refused(400, f"tools.{index}.custom.input_schema: Field required")
        if tool.input_schema.get("type") != "object":
            raise Refused(400, f"tools.{index}.custom.input_schema.type: Input should be 'object'")
        names.append(tool.name)
    if len({*names}) != len(names):
        raise Refused(400, "tools: Tool names must be unique.")
    choice = body.tool_choice
    if choice is not None and not body.tools:
        raise Refused(400, "tool_choice may only be specified while providing tools.")
    if choice is not None and choice.type == "tool" and choice.name not in names:
        raise Refused(400, f"Tool '{choice.name}' not found in provided tools")


def _check_marks(body: Prompt, said: tuple[ParsedMessage, ...]) -> None:
    marked = sum(
        block.cache_control is not None
        for message in said
        for block in message.blocks
        if isinstance(block, Block)
    )
    marked += sum(tool.cache_control is not None for tool in body.tools or ())
    if isinstance(body.system, list):
        marked += sum(block.cache_control is not None for block in body.system)
    if marked > CACHE_MARKS_MAX:
        raise Refused(
            400,
            f"A maximum of {CACHE_MARKS_MAX} blocks with cache_control may be provided. "
            f"Found {marked}.",
        )
