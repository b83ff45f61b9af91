"""OpenAI Chat Completions' validation of requests that match the schema."""

import re

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.parsing import Place, read_typed
from parley.testing.llm_mock.providers.openai.completions_request import (
    PARTS,
    TEXT_ONLY,
    Body,
    Call,
    Message,
)
from parley.testing.llm_mock.providers.openai.errors import bad_pattern, too_long

NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
NAME = re.compile(NAME_PATTERN)
NAME_LENGTH_MAX = 64
CALL_ID_LENGTH_MAX = 40
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
REASONING_MODEL = re.compile(r"(o\d|gpt-5)")


def check(body: Body) -> None:
    """Refuse a request that the provider refuses.

    Raises:
        Refused: with the provider's message.
    """
    if not body.messages:
        raise Refused(
            400,
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            param="messages",
            code="empty_array",
        )
    if body.stream_options is not None and not body.stream:
        raise Refused(
            400,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if body.max_tokens is not None and REASONING_MODEL.match(body.model):
        raise Refused(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    for index, message in enumerate(body.messages):
        _check_message(message, Place(("messages", index)))
    _check_calls(body.messages)
    _check_tools(body)


def _check_message(message: Message, place: Place) -> None:
    if message.role not in ROLES:
        known = ", ".join(f"'{role}'" for role in ROLES)
        raise Refused(
            400,
            f"Invalid value: '{message.role}'. Supported values are: {known}.",
            param=(place / "role").indexed(),
            code="invalid_value",
        )
    if isinstance(message.content, list):
        if not message.content:
            raise Refused(400, f"[] is too short - '{(place / 'content').dotted()}'")
        for number, raw in enumerate(message.content):
            read_typed(raw, PARTS.get(message.role, TEXT_ONLY), place / "content" / number)
    elif message.content is None and not (message.role == "assistant" and message.tool_calls):
        raise Refused(
            400,
            "Invalid value for 'content': expected a string, got null.",
            param=(place / "content").indexed(),
        )
    if message.tool_calls == []:
        param = (place / "tool_calls").indexed()
        raise Refused(
            400,
            f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            param=param,
            code="empty_array",
        )
    for number, call in enumerate(message.tool_calls or ()):
        _check_call(call, place / "tool_calls" / number)


def _check_call(call: Call, place: Place) -> None:
    if len(call.id) > CALL_ID_LENGTH_MAX:
        raise too_long((place / "id").indexed(), call.id, CALL_ID_LENGTH_MAX)
    if call.function is None and call.type == "function":
        param = (place / "function").indexed()
        raise Refused(400, f"Missing required parameter: '{param}'.", param=param)
    if call.function is not None and not NAME.fullmatch(call.function.name):
        raise bad_pattern((place / "function" / "name").indexed(), NAME_PATTERN)


def _check_calls(messages: list[Message]) -> None:
    """Refuse calls without results directly after them, and results without calls before them."""
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id is None:
                param = f"messages[{index}].tool_call_id"
                raise Refused(400, f"Missing required parameter: '{param}'.", param=param)
            if message.tool_call_id not in open_ids:
                raise Refused(
                    400,
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    param=f"messages.[{index}].role",
                )
            open_ids.remove(message.tool_call_id)
            continue
        _check_answered(open_ids, f"messages.[{index}].role")
        open_ids = [call.id for call in message.tool_calls or ()]
    _check_answered(open_ids, "messages")


def _check_answered(open_ids: list[str], param: str) -> None:
    if open_ids:
        raise Refused(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(open_ids)}",
            param=param,
        )


def _check_tools(body: Body) -> None:
    if body.tools == []:
        raise Refused(
            400,
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            param="tools",
            code="empty_array",
        )
    for name in ("tool_choice", "parallel_tool_calls"):
        if getattr(body, name) not in (None, "none") and not body.tools:
            raise Refused(400, f"'{name}' is only allowed when 'tools' are specified.", param=name)
    for index, tool in enumerate(body.tools or ()):
        if tool.function is None:
            continue
        param = f"tools[{index}].function.name"
        if not NAME.fullmatch(tool.function.name):
            raise bad_pattern(param, NAME_PATTERN)
        if len(tool.function.name) > NAME_LENGTH_MAX:
            raise too_long(param, tool.function.name, NAME_LENGTH_MAX)
