"""Encodes a request: the prompt as input items, and the other fields."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any, assert_never

import msgspec

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import File, Text, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import ToolSpec
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.attachments import (
    Accepted,
    Audio,
    Dropped,
    Image,
    InlineText,
    PdfDocument,
    Placeholder,
    TextDocument,
    attachment_of,
)
from chatd.providers.media import TextContent, read_result
from chatd.providers.openai_addresses import address, text_option
from chatd.providers.openai_tools import (
    dialect_of,
    effort_of,
    flag_option,
    parameters_of,
    thinks,
    tool_option,
    with_extra_body,
)
from chatd.providers.responses.decoder import ResponsesDecoder
from chatd.providers.responses.history import AnswerItems
from chatd.providers.wire import HttpRequest
from parley.tool_schemas import SchemaDialect

Json = dict[str, Any]  # An outgoing body; the tests check it against the SDK's types.

ACCEPTED = frozenset({Accepted.IMAGE, Accepted.PDF})
OUTPUT_TOKENS_MIN = 16  # Smaller values are rejected.


class ResponsesWire:
    """The wire format of OpenAI's Responses: OpenAI, Azure and compatible endpoints.

    Options beside those of `address`: `store` (true), `parallel_tool_calls`, `service_tier`,
    `verbosity`, `reasoning_summary` (such as "auto"), `web_search` (true or its settings),
    `safety_identifier` (a string, or true for one derived from the owner), `prompt_cache_key`
    (whether the chat id is sent, for the provider's cache; by default to OpenAI only), `efforts`
    (those that the model accepts) and `extra_body`.
    """

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        """Return the HTTP request."""
        url, headers = address(target, "responses")
        body = with_extra_body(_body(request, target), target) | {"stream": True}
        if "tools" in body and not request.may_call_tools:
            body["tool_choice"] = "none"
        return HttpRequest(url, headers, msgspec.json.encode(body))

    def decoder(self) -> ResponsesDecoder:
        """Return a decoder for one answer."""
        return ResponsesDecoder()


def _body(request: ModelRequest, target: Target) -> Json:
    store = flag_option(target, "store", default=True)
    items = list(_input(request, target, store=store))
    if not items:
        raise ModelError(
            ErrorKind.GENERIC,
            "There is nothing to answer; send a message first.",
            is_retryable=False,
            provider=target.provider_name,
        )
    return {
        "model": target.model_name,
        "input": items,
        "store": store,
        **_tools(request, target),
        **_thinking(request, target),
        **_settings(request, target),
    }


def _input(request: ModelRequest, target: Target, *, store: bool) -> Iterator[Json]:
    is_compatible = target.provider_type is ProviderType.OPENAI_COMPATIBLE
    system_role = "system" if is_compatible else "developer"
    sent_ids: set[str] = set()
    for message in request.messages:
        match message.role:
            case Role.SYSTEM:
                yield from _said(message, request, system_role)
            case Role.USER:
                yield from _said(message, request, "user")
            case Role.ASSISTANT:
                yield from AnswerItems(message, store=store, sent_ids=sent_ids)
            case Role.TOOL:
                yield from _results(message)
            case _:
                assert_never(message.role)


def _said(message: PromptMessage, request: ModelRequest, role: str) -> Iterator[Json]:
    content: list[Json] = []
    for part in message.content:
        if isinstance(part, Text):
            content.append({"type": "input_text", "text": part.text})
        elif isinstance(part, File):
            content.extend(_file(part, request))
    if content:
        yield {"role": role, "content": content}


def _file(file: File, request: ModelRequest) -> Iterator[Json]:
    attachment = attachment_of(file, request.files.get(file.file_id), ACCEPTED)
    match attachment:
        case InlineText(text) | Placeholder(text) | TextDocument(text):
            yield {"type": "input_text", "text": text}
        case Image(media_type, data):
            yield _image(_data_url(media_type, data))
        case PdfDocument(data, name):
            yield {
                "type": "input_file",
                "filename": name or "document.pdf",
                "file_data": _data_url("application/pdf", data),
            }
        case Audio() | Dropped():
            return
        case _:
            assert_never(attachment)


def _results(message: PromptMessage) -> Iterator[Json]:
    for part in message.content:
        if isinstance(part, ToolResult):
            yield {
                "type": "function_call_output",
                "call_id": part.tool_call_id,
                "output": _output(part),
            }


def _output(result: ToolResult) -> str | list[Json]:
    """Return the output of a tool: one string, or a list when it contains images."""
    contents = read_result(result.result_json)
    texts = [content.text for content in contents if isinstance(content, TextContent)]
    if len(texts) == len(contents):
        return "\n".join(texts)
    return [
        {"type": "input_text", "text": content.text}
        if isinstance(content, TextContent)
        else _image(f"data:{content.media_type};base64,{content.data_base64}")
        for content in contents
    ]


def _tools(request: ModelRequest, target: Target) -> Json:
    dialect = dialect_of(target)
    tools = [_tool(spec, dialect) for spec in request.tools]
    web_search = tool_option(target, "web_search")
    if web_search is not None:
        tools.append({"type": "web_search", **web_search})
    if not tools:
        return {}
    made: Json = {"tools": tools, "tool_choice": "auto"}
    if "parallel_tool_calls" in target.options:
        made["parallel_tool_calls"] = flag_option(target, "parallel_tool_calls", default=True)
    return made


def _tool(spec: ToolSpec, dialect: SchemaDialect) -> Json:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": parameters_of(spec.input_schema_json, dialect),
        "strict": False,  # Else the provider requires all properties.
    }


def _thinking(request: ModelRequest, target: Target) -> Json:
    """Return the reasoning fields, with encrypted content; non-reasoning models reject both."""
    include: list[str] = []
    made: Json = {"include": include}
    if thinks(target):
        include.append("reasoning.encrypted_content")
        reasoning = {
            "effort": effort_of(target, request.reasoning_effort),
            "summary": text_option(target, "reasoning_summary"),
        }
        if any(reasoning.values()):
            made["reasoning"] = {name: value for name, value in reasoning.items() if value}
    if tool_option(target, "web_search") is not None:
        include.append("web_search_call.action.sources")
    return made if include else {}


def _settings(request: ModelRequest, target: Target) -> Json:
    made: Json = {}
    if request.output_tokens_max is not None:
        made["max_output_tokens"] = max(request.output_tokens_max, OUTPUT_TOKENS_MIN)
    if service_tier := text_option(target, "service_tier"):
        made["service_tier"] = service_tier
    if verbosity := text_option(target, "verbosity"):
        made["text"] = {"verbosity": verbosity}
    if identifier := _safety_identifier(request, target):
        made["safety_identifier"] = identifier
    is_cache_known = target.provider_type is ProviderType.OPENAI
    if request.chat_id and flag_option(target, "prompt_cache_key", default=is_cache_known):
        made["prompt_cache_key"] = request.chat_id
    return made


def _safety_identifier(request: ModelRequest, target: Target) -> str:
    identifier = target.options.get("safety_identifier")
    if identifier is True:
        return hashlib.sha256(request.owner_id.encode()).hexdigest() if request.owner_id else ""
    return "" if identifier is False else text_option(target, "safety_identifier")


def _image(url: str) -> Json:
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
