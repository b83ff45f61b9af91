"""Estimates the tokens of a call from its size, where its provider does not report them.

The estimate is for billing and only of the right order: a provider's own count replaces it whenever
there is one.
"""

from chatd.content.domain.parts import (
    ContextFile,
    File,
    FileReference,
    HookContext,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from chatd.models.domain.language_model import FileData, ModelRequest

BYTES_PER_TOKEN = 4

IMAGE_TOKENS = 1600  # What providers count for an image of the maximum size.
DOCUMENT_BYTES_PER_TOKEN = 32  # A PDF has far more bytes than text.


def estimated_tokens(content: tuple[Part, ...]) -> int:
    """Estimate the number of tokens of a content."""
    tokens = 0
    for part in content:
        # This runs for each message of a history, so it calls little.
        text = part.text if type(part) is Text else _text_of(part)
        size_bytes = len(text) if text.isascii() else len(text.encode(errors="replace"))
        tokens += -(-size_bytes // BYTES_PER_TOKEN)
    return tokens


def _text_of(part: Part) -> str:
    match part:
        case Text(text) | Reasoning(text) | HookContext(text=text):
            return text
        case ToolCall(args_json=text) | ToolResult(result_json=text):
            return text
        case FileReference(content=text) | ContextFile(content=text):
            return text
        case _:
            return ""


def tokens_of_bytes(size_bytes: int) -> int:
    """Return the tokens of UTF-8 text of a size."""
    return -(-size_bytes // BYTES_PER_TOKEN)


def text_bytes(text: str) -> int:
    """Return the size of a text in UTF-8, also of one that cannot be encoded."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def estimated_input_tokens(request: ModelRequest) -> int:
    """Return the tokens of a request's prompt: messages, tools and files."""
    parts = tuple([part for message in request.messages for part in message.content])
    files = (request.files.get(part.file_id) for part in parts if isinstance(part, File))
    tools_bytes = sum(
        [
            text_bytes(tool.name + tool.description + tool.input_schema_json)
            for tool in request.tools
        ]
    )
    return (
        estimated_tokens(parts)
        + tokens_of_bytes(tools_bytes)
        + sum(_file_tokens(file) for file in files if file is not None)
    )


def _file_tokens(file: FileData) -> int:
    if file.media_type.startswith("image/"):
        return IMAGE_TOKENS
    if file.media_type.startswith("text/"):
        return tokens_of_bytes(len(file.data))
    return -(-len(file.data) // DOCUMENT_BYTES_PER_TOKEN)
