"""A conversation as text, for models that are no party to it.

Tool exchanges are rewritten as text: with calls in its prompt a model without tools tries to make
some.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, Part, Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.truncation import truncated, without_large_bytes

RECENT_BYTES_MAX: Final = 12_000
RECENT_MESSAGES_MAX: Final = 20
#: Of one message, so that a large tool result does not displace all others.
MESSAGE_BYTES_MAX: Final = 4000


def recent_text(messages: Sequence[PromptMessage]) -> str:
    """Return the newest messages as text, without gaps, up to the first that does not fit."""
    left_bytes = RECENT_BYTES_MAX
    kept: list[str] = []
    for note in reversed([*_notes(messages)]):
        size_bytes = len(note.encode())
        if len(kept) == RECENT_MESSAGES_MAX or size_bytes > left_bytes:
            break
        left_bytes -= size_bytes
        kept.append(note)
    return "\n\n".join(reversed(kept))


def _notes(messages: Iterable[PromptMessage]) -> Iterator[str]:
    """Yield every message as text; a call is written together with its result."""
    open_calls: dict[str, ToolCall] = {}
    for message in messages:
        yield from _unanswered(open_calls) if message.role is not Role.TOOL else ()
        if message.role is Role.TOOL:
            texts = [_exchange(part, open_calls) for part in message.content]
            text = "\n".join(each for each in texts if each)
        else:
            name = "user" if message.role is Role.USER else "agent"
            said = text_of(message.content)
            text = f"[{name}] {said}" if said else ""
            calls = (part for part in message.content if isinstance(part, ToolCall))
            open_calls.update((call.tool_call_id, call) for call in calls)
        if text:
            yield truncated(text, MESSAGE_BYTES_MAX)
    yield from _unanswered(open_calls)


def _unanswered(open_calls: dict[str, ToolCall]) -> Iterator[str]:
    """Yield the calls without a result, and forget them."""
    for call in open_calls.values():
        yield truncated(f"[tool {call.tool_name}] {call.args_json}", MESSAGE_BYTES_MAX)
    open_calls.clear()


def _exchange(part: Part, open_calls: dict[str, ToolCall]) -> str:
    if not isinstance(part, ToolResult):
        return ""
    call = open_calls.pop(part.tool_call_id, None)
    arguments = "" if call is None else f" {call.args_json}"
    result = without_large_bytes(part.result_json)
    return f"[tool {part.tool_name}]{arguments}\n{part.outcome}: {result}"


def text_of(content: Iterable[Part]) -> str:
    """Return the texts of a message, with files by their names."""
    return "\n".join(text for part in content if (text := _shown(part)))


def _shown(part: Part) -> str:
    match part:
        case Text(text):
            return text.strip()
        case File(media_type=media_type, name=name):
            return f"[a file of type {media_type}, {name or 'without a name'}]"
        case _:
            return ""
