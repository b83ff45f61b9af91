"""Makes provider-executed calls of the history valid to send back, or rejects the prompt.

Only web searches can be sent back, and only complete: a call and, later in the same message, its
result with Anthropic's metadata. A prompt that breaks this is rejected as a whole, and permanently,
because the same history is sent with every turn. So offending parts are removed, step by step, as
few as possible; the content of a removed result stays as text. The latest answer is not changed
when it contains signed thinking blocks: Anthropic rejects those once the parts around them have
changed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import ModelError
from chatd.providers.anthropic.metadata import anthropic_metadata_of, is_signed
from chatd.providers.media import result_text

WEB_SEARCH = "web_search"

_CALL_ID = re.compile(r"srvtoolu_[A-Za-z0-9_]+")

Messages = tuple[PromptMessage, ...]
Place = tuple[int, int]  # Index of a message in the prompt, and of a part in the message.


class Violation(StrEnum):
    """Why the provider would reject a part."""

    OUTSIDE_ANSWER = "outside_answer"
    CALL_WITHOUT_RESULT = "call_without_result"
    RESULT_WITHOUT_CALL = "result_without_call"
    RESULT_BEFORE_CALL = "result_before_call"
    DUPLICATE_ID = "duplicate_id"
    INVALID_CALL = "invalid_call"
    INVALID_RESULT = "invalid_result"


@dataclass(frozen=True, slots=True)
class SanitisedPrompt:
    """A prompt that can be sent.

    Attributes:
        messages: The messages, none of them empty.
        is_intact: Nothing was removed, so that citations still have their search results.
    """

    messages: Messages
    is_intact: bool


def sanitised_prompt(messages: Messages, provider_name: str) -> SanitisedPrompt:
    """Return a prompt whose provider-executed calls can be sent.

    Raises:
        ModelError: That is impossible without changing the latest signed answer.
    """
    if not any(_is_provided(part) for message in messages for part in message.content):
        return SanitisedPrompt(messages, is_intact=True)
    mended = _with_text_for_others(messages)
    for mend in (_unchanged, _without_orphans, _sanitised, _stripped):
        mended = mend(mended)
        if not violations(mended):
            return SanitisedPrompt(mended, is_intact=mended == messages)
    raise ModelError(
        ErrorKind.GENERIC,
        "This chat holds a web search that can no longer be sent to the provider. "
        "Start a new chat, or choose a model of another provider.",
        is_retryable=False,
        provider=provider_name,
    )


def violations(messages: Sequence[PromptMessage]) -> Mapping[Place, Violation]:
    """Return all parts that the provider would reject, by place."""
    found: dict[Place, Violation] = {}
    seen: set[tuple[type[Part], str]] = set()
    for index, message in enumerate(messages):
        for place, part in enumerate(message.content):
            if isinstance(part, ToolCall | ToolResult) and part.provider_executed:
                violation = _violation(message, place, part)
                if violation is Violation.CALL_WITHOUT_RESULT and _is_end(messages, index, place):
                    violation = None  # The provider paused; its result comes with the next answer.
                if violation is None and (type(part), part.tool_call_id) in seen:
                    violation = Violation.DUPLICATE_ID
                seen.add((type(part), part.tool_call_id))
                if violation is not None:
                    found[index, place] = violation
    return found


def _is_end(messages: Sequence[PromptMessage], index: int, place: int) -> bool:
    return index == len(messages) - 1 and place == len(messages[index].content) - 1


def _violation(message: PromptMessage, place: int, part: ToolCall | ToolResult) -> Violation | None:
    """Return why a part is invalid in its message; None if it is valid."""
    if message.role is not Role.ASSISTANT:
        return Violation.OUTSIDE_ANSWER
    match part:
        case ToolCall():
            if not _is_valid_call(part):
                return Violation.INVALID_CALL
            is_answered = any(_answers(other, part) for other in message.content)
            return None if is_answered else Violation.CALL_WITHOUT_RESULT
        case ToolResult():
            if anthropic_metadata_of(part.provider_metadata).search is None:
                return Violation.INVALID_RESULT
            calls = [at for at, other in enumerate(message.content) if _answers(part, other)]
            if not calls:
                return Violation.RESULT_WITHOUT_CALL
            return None if calls[0] < place else Violation.RESULT_BEFORE_CALL


def _answers(result: Part, call: Part) -> bool:
    return (
        isinstance(result, ToolResult)
        and isinstance(call, ToolCall)
        and result.provider_executed
        and call.provider_executed
        and result.tool_call_id == call.tool_call_id
    )


def _is_valid_call(call: ToolCall) -> bool:
    if call.tool_name != WEB_SEARCH or not _CALL_ID.fullmatch(call.tool_call_id):
        return False
    try:
        return isinstance(json.loads(call.args_json), dict)
    except (ValueError, RecursionError):
        return False


def _with_text_for_others(messages: Messages) -> Messages:
    """Return the prompt with provider-executed tools other than the web search as text."""
    others = {
        part.tool_call_id
        for message in messages
        for part in message.content
        if isinstance(part, ToolCall)
        and part.provider_executed
        and (part.tool_name != WEB_SEARCH or anthropic_metadata_of(part.provider_metadata).caller)
    }

    def is_other(place: Place, part: Part) -> bool:
        return isinstance(part, ToolCall | ToolResult) and (
            part.tool_call_id in others or part.tool_name != WEB_SEARCH
        )

    return _without(messages, is_other)


def _unchanged(messages: Messages) -> Messages:
    return messages


def _without_orphans(messages: Messages) -> Messages:
    """Return the prompt without calls that never got a result, as interruptions leave them."""
    found = violations(messages)
    return _without(messages, lambda place, part: found.get(place) is Violation.CALL_WITHOUT_RESULT)


def _sanitised(messages: Messages) -> Messages:
    """Return the prompt without the offending parts, removed until nothing changes."""
    while True:
        found = violations(messages)
        kept = _protected(messages)
        mended = _without(messages, lambda place, part: place in found and place[0] != kept)  # noqa: B023 (used at once)
        if mended == messages:
            return messages
        messages = mended


def _stripped(messages: Messages) -> Messages:
    """Return the prompt without any provider-executed part."""
    kept = _protected(messages)
    return _without(messages, lambda place, part: place[0] != kept)


def _protected(messages: Messages) -> int | None:
    """Return the index of the latest answer if its thinking blocks are signed."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.ASSISTANT:
            reasoning = (part for part in messages[index].content if isinstance(part, Reasoning))
            signed = any(
                is_signed(anthropic_metadata_of(thinking.provider_metadata))
                for thinking in reasoning
            )
            return index if signed else None
    return None


def _without(messages: Messages, is_out: Callable[[Place, Part], bool]) -> Messages:
    """Return the prompt without some of its provider-executed parts and without empty messages."""

    def kept(index: int, content: Iterable[Part]) -> Iterator[Part]:
        for place, part in enumerate(content):
            if not _is_provided(part) or not is_out((index, place), part):
                yield part
            elif isinstance(part, ToolResult):
                yield Text(f"[{part.tool_name} gave {result_text(part.result_json)}]")

    made = (
        replace(message, content=tuple(kept(index, message.content)))
        for index, message in enumerate(messages)
    )
    return tuple(message for message in made if message.content)


def _is_provided(part: Part) -> bool:
    return isinstance(part, ToolCall | ToolResult) and part.provider_executed
