"""Removes the provider-specific parts of other providers from a prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage


@dataclass(frozen=True, slots=True)
class PromptTarget:
    """The model that receives a prompt.

    Attributes:
        has_bound_reasoning: Whether its provider accepts reasoning only for the model that wrote
            it, and rejects that of its other models.
    """

    model_id: str
    provider_id: str
    has_bound_reasoning: bool = False


def for_target(
    messages: Sequence[PromptMessage], target: PromptTarget, provider_of: Callable[[str], str]
) -> tuple[PromptMessage, ...]:
    """Return the prompt as this model may receive it.

    Answers of another or an unknown provider lose their provider-executed parts and their provider
    metadata. Stored messages do not change: a chat that switches back has them again.
    """
    kept: list[PromptMessage] = []
    for message in messages:
        change = _change_for(message, target, provider_of)
        if change is None:
            kept.append(message)
            continue
        content = tuple(part for each in message.content if (part := change(each)) is not None)
        if content:
            kept.append(PromptMessage(message.role, content, message.model_id))
    return tuple(kept)


def _change_for(
    message: PromptMessage, target: PromptTarget, provider_of: Callable[[str], str]
) -> Callable[[Part], Part | None] | None:
    """Return the conversion of a message's parts; None if it stays unchanged."""
    if message.role is not Role.ASSISTANT:
        return None
    if provider_of(message.model_id) != target.provider_id:
        return _plain
    is_own = message.model_id == target.model_id
    return _without_bound_reasoning if target.has_bound_reasoning and not is_own else None


def _without_bound_reasoning(part: Part) -> Part | None:
    return _plain(part) if isinstance(part, Reasoning) else part


def _plain(part: Part) -> Part | None:
    match part:
        case ToolCall(provider_executed=True) | ToolResult(provider_executed=True):
            return None
        case Reasoning(text=text):
            # Reasoning without text was only metadata of its provider.
            return msgspec.structs.replace(part, provider_metadata="") if text.strip() else None
        case Text() | ToolCall() | ToolResult():
            return msgspec.structs.replace(part, provider_metadata="")
        case _:
            return part
