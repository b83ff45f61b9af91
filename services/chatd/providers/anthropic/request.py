"""Encodes a model request as a request body."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import Text, ToolCall
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import ToolSpec
from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.anthropic.options import Options
from chatd.providers.anthropic.prompt_blocks import BlockMaker, result_blocks_first, tool_name
from chatd.providers.anthropic.searches import WEB_SEARCH, sanitised_prompt
from chatd.providers.anthropic.thinking import is_budgeted, thinking_fields
from parley.tool_schemas import SchemaDialect, SchemaUnusable, normalised

if TYPE_CHECKING:
    from anthropic.types import ContentBlockParam, MessageParam, TextBlockParam, ToolUnionParam

OUTPUT_TOKENS_MAX = 32_000
WEB_SEARCH_TOOL = "web_search_20250305"
CACHED_MESSAGES = 2
PAUSED = ("server_tool_use", "web_search_tool_result")

Body = dict[str, object]


def body_of(request: ModelRequest, target: Target, options: Options) -> Body:
    """Return the body without model and stream fields.

    Raises:
        ModelError: The provider would reject it.
    """
    leading = _leading(request.messages)
    prompt = sanitised_prompt(_joined(request.messages[leading:]), target.provider_name)
    maker = BlockMaker(target, request.files, with_citations=prompt.is_intact)
    messages = _messages(prompt.messages, maker)
    if not messages:
        raise ModelError(
            ErrorKind.GENERIC,
            "There is nothing to answer: the chat holds no message for a model. Send one.",
            is_retryable=False,
            provider=target.provider_name,
        )
    system = _system(request.messages[:leading])
    if options.prompt_caching:
        _mark(system[-1:])
        _mark(_last_blocks(messages[-CACHED_MESSAGES:]))
    output_tokens_max = request.output_tokens_max or OUTPUT_TOKENS_MAX
    body: Body = {"max_tokens": output_tokens_max, "messages": messages}
    if system:
        body["system"] = system
    body |= _tool_fields(request, options)
    body |= _thinking(request, target, options, output_tokens_max, messages)
    if request.owner_id:
        body["metadata"] = {"user_id": request.owner_id}
    return body


def encoded(body: Mapping[str, object]) -> bytes:
    """Return a body as JSON; lone surrogates, which JSON cannot encode, are replaced."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return repaired(json.dumps(body, ensure_ascii=False)).encode()


def _leading(messages: tuple[PromptMessage, ...]) -> int:
    """Return how many system messages the prompt begins with."""
    for place, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return place
    return len(messages)


def _system(messages: Iterable[PromptMessage]) -> "list[TextBlockParam]":
    return [
        {"type": "text", "text": part.text}
        for message in messages
        for part in message.content
        if isinstance(part, Text) and part.text.strip()
    ]


def _joined(messages: Iterable[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return the prompt with a paused answer and its continuation merged into one message."""
    joined: list[PromptMessage] = []
    for message in messages:
        if joined and joined[-1].role is message.role is Role.ASSISTANT:
            content = (*joined[-1].content, *message.content)
            joined[-1] = replace(joined[-1], content=content)
        else:
            joined.append(message)
    return tuple(joined)


def _messages(prompt: Iterable[PromptMessage], maker: BlockMaker) -> "list[MessageParam]":
    """Return messages that begin with a user message, alternate, and end with one to answer."""
    turns: list[tuple[str, list[ContentBlockParam]]] = []
    for message in prompt:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = maker.blocks(message)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if turns and turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"type": "text", "text": "[The beginning was left out.]"}]))
    if turns and turns[-1][0] == "assistant" and turns[-1][1][-1]["type"] not in PAUSED:
        # The newest models refuse to continue an answer of their own, unless they paused it.
        turns.append(("user", [{"type": "text", "text": "Go on."}]))
    return [
        {"role": "assistant", "content": blocks}
        if role == "assistant"
        else {"role": "user", "content": result_blocks_first(blocks)}
        for role, blocks in turns
    ]


def _last_blocks(messages: "list[MessageParam]") -> "list[ContentBlockParam]":
    return [list(message["content"])[-1] for message in messages]  # type: ignore[misc]  # Never text.


def _mark(blocks: "Iterable[ContentBlockParam]") -> None:
    """Set cache breakpoints on blocks; the last block of a message is never a thinking block."""
    for block in blocks:
        block["cache_control"] = {"type": "ephemeral"}  # type: ignore[typeddict-unknown-key]


def _tool_fields(request: ModelRequest, options: Options) -> Body:
    """Return the tools, and a tool choice of none if they may not be called."""
    tools: list[ToolUnionParam | dict[str, object]] = [_tool(spec) for spec in request.tools]
    names = {spec.name for spec in request.tools}
    if options.web_search is not False and WEB_SEARCH not in names:
        wanted = options.web_search if isinstance(options.web_search, dict) else {}
        tools.append({"type": WEB_SEARCH_TOOL, **wanted, "name": WEB_SEARCH})
    tools.extend(options.server_tools)
    may_call_tools = request.may_call_tools
    if not tools:
        # Calls in the history are rejected when no tool is defined at all.
        tools.extend(_stubs(request.messages))
        may_call_tools = False
    if not tools:
        return {}
    return {"tools": tools} if may_call_tools else {"tools": tools, "tool_choice": {"type": "none"}}


def _stubs(messages: Iterable[PromptMessage]) -> "list[ToolUnionParam]":
    calls = (part for message in messages for part in message.content if isinstance(part, ToolCall))
    names = dict.fromkeys(tool_name(call.tool_name) for call in calls if not call.provider_executed)
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _tool(spec: ToolSpec) -> "ToolUnionParam":
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": _schema(spec.input_schema_json),
    }


def _schema(schema_json: str) -> dict[str, object]:
    """Return a schema as the provider accepts it; without a valid one the tool takes anything."""
    try:
        return normalised(schema_json, SchemaDialect.ANTHROPIC)
    except SchemaUnusable:
        return {"type": "object"}


def _thinking(
    request: ModelRequest,
    target: Target,
    options: Options,
    output_tokens_max: int,
    messages: "list[MessageParam]",
) -> Body:
    """Return the thinking fields: from the options, else from the effort, else none."""
    if options.thinking is not None:
        fields: Body = {"thinking": options.thinking}
    else:
        effort = request.reasoning_effort
        fields = thinking_fields(target.model_name, effort, output_tokens_max)
    if is_budgeted(fields) and _is_loop_without_thinking(messages):
        return {name: each for name, each in fields.items() if name != "thinking"}
    return fields


def _is_loop_without_thinking(messages: "list[MessageParam]") -> bool:
    """Return whether tools were called without thinking, which then may not be enabled midway."""
    is_loop = False
    for message in reversed(messages):
        first = _type(next(iter(message["content"])))
        if message["role"] == "assistant":
            if "thinking" in first:
                return False
        elif first == "tool_result":
            is_loop = True
        else:
            break
    return is_loop


def _type(block: object) -> str:
    return str(block["type"]) if isinstance(block, dict) else ""
