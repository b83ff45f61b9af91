"""The context breakdown: which part of a prompt takes how much of the model's window."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.content.domain.tools import ToolSpec
from chatd.models.domain.estimates import estimated_tokens, text_bytes, tokens_of_bytes
from chatd.turns.domain.compaction import boundary_place
from chatd.turns.domain.prompt import prompt_rows
from chatd.turns.domain.system_prompt import (
    SystemPrompt,
    blocks_of,
    instructions_block,
    skills_block,
)


class ContextPart(StrEnum):
    """A part of a prompt."""

    SYSTEM_PROMPT = "system_prompt"
    INSTRUCTIONS = "instructions"
    SKILLS = "skills"
    TOOLS = "tools"
    SUMMARY = "summary"
    HISTORY = "history"


def context_breakdown(
    history: Sequence[Message], system_prompt: SystemPrompt, tools: Sequence[ToolSpec]
) -> Mapping[ContextPart, int]:
    """Return the estimated tokens of each part of the next prompt."""
    place = boundary_place(history)
    boundary = None if place is None else history[place]
    rows = prompt_rows(history)
    spoken = [row for row in rows if row.role is not Role.SYSTEM and row is not boundary]
    system = [row for row in rows if row.role is Role.SYSTEM and row is not boundary]
    own = replace(system_prompt, instruction_files=(), skills=())
    blocks = (Text(own.default_instructions), *map(Text, blocks_of(own)))
    tool_bytes = sum(
        text_bytes(tool.name) + text_bytes(tool.description) + text_bytes(tool.input_schema_json)
        for tool in tools
    )
    return {
        ContextPart.SYSTEM_PROMPT: estimated_tokens(blocks) + _tokens(system),
        ContextPart.INSTRUCTIONS: estimated_tokens(
            (Text(instructions_block(system_prompt.instruction_files)),)
        ),
        ContextPart.SKILLS: estimated_tokens((Text(skills_block(system_prompt.skills)),)),
        ContextPart.TOOLS: tokens_of_bytes(tool_bytes),
        ContextPart.SUMMARY: 0 if boundary is None else estimated_tokens(boundary.content),
        ContextPart.HISTORY: _tokens(spoken),
    }


def _tokens(rows: Sequence[Message]) -> int:
    return sum(estimated_tokens(row.content) for row in rows)
