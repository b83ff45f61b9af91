"""Requests to Anthropic as tests make them, and the bodies that leave."""

import json

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.anthropic.metadata import AnthropicMetadata, SearchHit, written
from parley.settings import Secret
from support.chatd.providers.anthropic_events import JsonObject

HIT = SearchHit("https://example.org/a", "A", "secret")


def user(*content: Part | str) -> PromptMessage:
    return PromptMessage(Role.USER, _parts(content))


def assistant(*content: Part | str) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, _parts(content), "m")


def system(*content: str) -> PromptMessage:
    return PromptMessage(Role.SYSTEM, _parts(content))


def tool(*content: Part) -> PromptMessage:
    return PromptMessage(Role.TOOL, content)


def result(
    result_json: str, call_id: str = "toolu_1", outcome: ToolOutcome = ToolOutcome.DONE
) -> ToolResult:
    return ToolResult(call_id, "add", result_json, outcome)


def search_call(call_id: str = "srvtoolu_1", args_json: str = '{"query":"a"}') -> ToolCall:
    return ToolCall(call_id, "web_search", args_json, provider_executed=True)


def search_result(call_id: str = "srvtoolu_1", own: AnthropicMetadata | None = None) -> ToolResult:
    return ToolResult(
        call_id,
        "web_search",
        '[{"title":"A"}]',
        ToolOutcome.DONE,
        provider_executed=True,
        provider_metadata=written(AnthropicMetadata(search=(HIT,)) if own is None else own),
    )


def target(model_name: str = "claude-sonnet-4-5", **options: object) -> Target:
    return Target(
        "provider-1", ProviderType.ANTHROPIC, "Anthropic", model_name, "", Secret("key"), options
    )


def asked(*messages: PromptMessage) -> ModelRequest:
    return ModelRequest("model-1", messages, ())


def body(request: ModelRequest, to: Target | None = None) -> JsonObject:
    """Return the body that leaves."""
    sent: JsonObject = json.loads(AnthropicWire().request(request, to or target()).body)
    return sent


def messages_of(*messages: PromptMessage) -> object:
    """Return the messages that leave, without cache marks."""
    return body(asked(*messages), target(prompt_caching=False))["messages"]


def _parts(content: tuple[Part | str, ...]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in content)
