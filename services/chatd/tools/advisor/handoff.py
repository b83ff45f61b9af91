"""The prompt of the advisor, built from the prompt and the answer of the agent that asks it.

The recent conversation is one message, because the advisor is no party to it.
"""

from collections.abc import Sequence
from typing import Final

from chatd.content.domain.conversations import recent_text, text_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Reasoning, Text
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.truncation import excerpt

QUESTION_CHARACTERS_MAX: Final = 2000
SYSTEM_BYTES_MAX: Final = 12_000
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
        text_of(message.content)
        for message in prompt
        if message.role is Role.SYSTEM and text_of(message.content) != guidance
    ]
    systems = (*_newest_that_fit(told), CONTRACT)
    recent = recent_text([message for message in prompt if message.role is not Role.SYSTEM])
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


def _tail(content: Sequence[Part], kind: type[Text] | type[Reasoning]) -> str:
    """Return the end of the texts of one kind."""
    texts = [part.text for part in content if isinstance(part, kind)]
    return "\n".join(texts).strip()[-STEP_CHARACTERS_MAX:]


def _section(title: str, text: str) -> str:
    return f"{title}:\n{text}" if text else ""
