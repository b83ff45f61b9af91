"""Estimates the number of tokens of message parts from their size."""

from chatd.content.domain.parts import (
    ContextFile,
    FileReference,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

BYTES_PER_TOKEN = 4


def estimated_tokens(content: tuple[Part, ...]) -> int:
    """Estimate the number of tokens of a content."""
    return sum(-(-len(_text_of(part).encode()) // BYTES_PER_TOKEN) for part in content)


def _text_of(part: Part) -> str:
    match part:
        case Text(text) | Reasoning(text):
            return text
        case ToolCall(args_json=text) | ToolResult(result_json=text):
            return text
        case FileReference(content=text) | ContextFile(content=text):
            return text
        case _:
            return ""
