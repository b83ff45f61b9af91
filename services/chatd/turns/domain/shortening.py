"""Shortens a prompt that a model rejected as too long: old results first, then old texts."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Text, ToolResult
from chatd.content.domain.truncation import truncated, truncated_json
from chatd.models.domain.language_model import PromptMessage

KEPT_PART = 0.6
RESULT_BYTES_MIN = 1024
TEXT_BYTES_MIN = 2048


def shortened(messages: Sequence[PromptMessage], times: int) -> tuple[PromptMessage, ...]:
    """Return a prompt cut to about 60 % of its size, `times` times; system messages stay.

    Cutting stops as soon as the size is reached, and goes from old to new, because the work depends
    most on the newest messages.
    """
    total_bytes = sum(_bytes_of(part) for message in messages for part in message.content)
    excess_bytes = total_bytes - round(total_bytes * KEPT_PART**times)
    made = list(messages)
    for kind in (ToolResult, Text):
        for place, message in enumerate(made):
            if excess_bytes <= 0:
                return tuple(made)
            if message.role is Role.SYSTEM:
                continue
            content = tuple(
                _cut(part) if isinstance(part, kind) else part for part in message.content
            )
            excess_bytes -= sum(map(_bytes_of, message.content)) - sum(map(_bytes_of, content))
            made[place] = replace(message, content=content)
    return tuple(made)


def _cut(part: Part) -> Part:
    match part:
        case ToolResult(result_json=result_json):
            return msgspec.structs.replace(
                part, result_json=truncated_json(result_json, RESULT_BYTES_MIN)
            )
        case Text(text):
            return msgspec.structs.replace(part, text=truncated(text, TEXT_BYTES_MIN))
        case _:
            return part


def _bytes_of(part: Part) -> int:
    match part:
        case ToolResult(result_json=text) | Text(text=text):
            return len(text.encode())
        case _:
            return 0
