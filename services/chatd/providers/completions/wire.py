"""The Chat Completions wire format: request body and decoder."""

from functools import lru_cache
from typing import Final

import msgspec

from chatd.content.domain.truncation import repaired
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.completions.decoder import CompletionsDecoder
from chatd.providers.completions.messages import Conversion
from chatd.providers.completions.options import Options, options_of
from chatd.providers.openai_addresses import address, config_error
from chatd.providers.openai_tools import dialect_of, effort_of, parameters_of, thinks
from chatd.providers.wire import HttpRequest
from parley.tool_schemas import SchemaDialect

PATH = "chat/completions"
TOOLS_KEPT_MAX: Final = 1024

# Options that are fields of the body under the same name.
PASSED_ON = (
    "frequency_penalty",
    "presence_penalty",
    "prompt_cache_key",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "user",
    "verbosity",
)
# OpenAI's reasoning models reject sampling parameters.
SAMPLING = frozenset({"frequency_penalty", "presence_penalty", "temperature", "top_p"})


class CompletionsWire:
    """The wire format of Chat Completions."""

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        """Return the HTTP request.

        Raises:
            ModelError: The target is misconfigured, or there is no message to answer.
        """
        url, headers = address(target, PATH)
        body = _body(request, target, options_of(target))
        return HttpRequest(url, headers | {"Accept": "text/event-stream"}, _encoded(body))

    def decoder(self) -> CompletionsDecoder:
        """Return a decoder for one answer."""
        return CompletionsDecoder()


def _body(request: ModelRequest, target: Target, options: Options) -> dict[str, object]:
    messages = Conversion(request, options).messages()
    if not messages:
        raise config_error(target, "was sent nothing to answer; write a message first.")
    body: dict[str, object] = {"model": target.model_name, "messages": messages, "stream": True}
    if options.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.output_tokens_max is not None:
        body[options.max_tokens_field or "max_tokens"] = request.output_tokens_max
    if effort := effort_of(target, request.reasoning_effort):
        body["reasoning_effort"] = effort
    if options.store is not None:
        body["store"] = options.store
    tools = _tools(request, options, dialect_of(target))
    return body | tools | _passed_on(target) | options.extra_body


def _tools(request: ModelRequest, options: Options, dialect: SchemaDialect) -> dict[str, object]:
    """Return the tools and how they may be used; nothing when there are none."""
    if not request.tools:
        return {}
    tools = [
        encoded_tool(spec.name, spec.description, spec.input_schema_json, dialect)
        for spec in request.tools
    ]
    made: dict[str, object] = {"tools": tools}
    if not request.may_call_tools:
        made["tool_choice"] = "none"
    elif options.parallel_tool_calls is not None:
        made["parallel_tool_calls"] = options.parallel_tool_calls
    return made


@lru_cache(maxsize=TOOLS_KEPT_MAX)
def encoded_tool(
    name: str, description: str, input_schema_json: str, dialect: SchemaDialect
) -> msgspec.Raw:
    """Return a tool as it is sent; requests after one another have the same ones."""
    function: dict[str, object] = {"name": name}
    if description:
        function["description"] = description
    function["parameters"] = parameters_of(input_schema_json, dialect)
    return msgspec.Raw(_encoded({"type": "function", "function": function}))


def _passed_on(target: Target) -> dict[str, object]:
    is_strict = target.provider_type in (ProviderType.OPENAI, ProviderType.AZURE)
    left_out = SAMPLING if is_strict and thinks(target) else frozenset()
    return {
        name: target.options[name]
        for name in PASSED_ON
        if target.options.get(name) is not None and name not in left_out
    }


def _encoded(body: dict[str, object]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_repaired(body))


def _repaired(value: object) -> object:
    """Return a value with all strings in it as valid Unicode."""
    match value:
        case str():
            return repaired(value)
        case dict():
            return {name: _repaired(inner) for name, inner in value.items()}
        case list():
            return [_repaired(inner) for inner in value]
        case _:
            return value
