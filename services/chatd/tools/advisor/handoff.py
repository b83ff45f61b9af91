"""The prompt of the advisor, built from the prompt and the answer of the agent that asks it.

Tool exchanges are rewritten as text: with calls in its prompt a model without tools tries to make
some. The recent conversation is one message, because the advisor is no party to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.truncation import excerpt, truncated, without_large_bytes

QUESTION_CHARACTERS_MAX: Final = 2000
SYSTEM_BYTES_MAX: Final = 12_000
RECENT_BYTES_MAX: Final = 12_000
RECENT_MESSAGES_MAX: Final = 20
#: Of one message, so that a large tool result does not displace all others.
MESSAGE_BYTES_MAX: Final = 4000
STEP_CHARACTERS_MAX: Final = 4000

CONTRACT: Final = """\
You advise another agent, which works for a person with tools of its own. You have no tools and \
take no actions. You see its instructions above, the recent part of its conversation and its \
question. Do not address the person, do not claim that anything was done, and do not write tool \
calls. Answer briefly and strategically: what you recommend and why, the trade-offs and risks that \
matter, what to check first, and the next steps. If the question rests on a wrong assumption, say \
so."""


def handoff(
    prompt: Sequence[PromptMessage], answer: Sequence[Part], question: str, guidance: str
) -> tuple[PromptMessage, ...]:
    """Return the prompt of the advisor.

    Args:
        prompt: The prompt that the agent's model saw last.
        answer: The answer of that model, which asks the advisor.
        question: The question.
        guidance: The agent's instructions about the advisor, which are left out.
    """
    told = [
        _text_of(message.content)
        for message in prompt
        if message.role is Role.SYSTEM and _text_of(message.content) != guidance
    ]
    systems = (*_newest_that_fit(told), CONTRACT)
    recent = _recent([message for message in prompt if message.role is not Role.SYSTEM])
    conversation = (
        f"The recent conversation of the agent, oldest first:\n\n{recent}" if recent else "",
        _section("The agent's thoughts in this step", _tail(answer, Reasoning)),
        _section("What the agent wrote in this step", _tail(answer, Text)),
    )
    background = "\n\n".join(text for text in conversation if text)
    asked = f"The agent asks you: {excerpt(question.strip(), QUESTION_CHARACTERS_MAX)}"
    return (
        *(PromptMessage(Role.SYSTEM, (Text(text),)) for text in systems),
        *((PromptMessage(Role.USER, (Text(background),)),) if background else ()),
        PromptMessage(Role.USER, (Text(asked),)),
    )


def _newest_that_fit(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the newest texts that fit, in their order; one that is too large is skipped."""
    left_bytes = SYSTEM_BYTES_MAX
    kept: list[str] = []
    for text in reversed(texts):
        size_bytes = len(text.encode())
        if text and size_bytes <= left_bytes:
            left_bytes -= size_bytes
            kept.append(text)
    return tuple(reversed(kept))


def _recent(messages: Sequence[PromptMessage]) -> str:
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
    """Yield every message as text; a call is told together with its result."""
    open_calls: dict[str, ToolCall] = {}
    for message in messages:
        yield from _unanswered(open_calls) if message.role is not Role.TOOL else ()
        if message.role is Role.TOOL:
            texts = [_exchange(part, open_calls) for part in message.content]
            text = "\n".join(each for each in texts if each)
        else:
            name = "user" if message.role is Role.USER else "agent"
            said = _text_of(message.content)
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


def _text_of(content: Iterable[Part]) -> str:
    return "\n".join(text for part in content if (text := _shown(part)))


def _shown(part: Part) -> str:
    match part:
        case Text(text):
            return text.strip()
        case File(media_type=media_type, name=name):
            return f"[a file of type {media_type}, {name or 'without a name'}]"
        case _:
            return ""


def _tail(content: Sequence[Part], kind: type[Text] | type[Reasoning]) -> str:
    """Return the end of the texts of one kind."""
    texts = [part.text for part in content if isinstance(part, kind)]
    return "\n".join(texts).strip()[-STEP_CHARACTERS_MAX:]


def _section(title: str, text: str) -> str:
    return f"{title}:\n{text}" if text else ""
