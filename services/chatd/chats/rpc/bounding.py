"""Truncates content that is too large for one gRPC message to its head and its tail.

A message that no stream can carry would break every stream that sends it, and with a shared stream
all its subscriptions. Prompts and stored messages are not truncated.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from chatd.content.domain.parts import FileReference, Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.truncation import truncated, truncated_json, without_large_bytes

# Less than half of a reader's send queue: a result is sent live and then as a message.
MESSAGE_BYTES_MAX = 384 * 1024
# At most twenty are queued, and are sent together.
QUEUED_BYTES_MAX = 16 * 1024
# An export sends each message separately.
EXPORTED_BYTES_MAX = 3 * 1024 * 1024
# All messages of a page; a page that would be larger has fewer messages.
PAGE_BYTES_MAX = 2 * 1024 * 1024
# Bytes of the longest UTF-8 characters.
_WIDEST = 4


def bounded(content: Sequence[Part], bytes_max: int = MESSAGE_BYTES_MAX) -> Sequence[Part]:
    """Return the parts with at most so many bytes of text; the largest are cut to one size."""
    texts = [_text_of(part) for part in content]
    if sum(map(len, texts)) * _WIDEST <= bytes_max:
        return content
    sizes = [len(text.encode()) for text in texts]
    if sum(sizes) <= bytes_max:
        return content
    share = _share(sizes, bytes_max)
    return [
        part if size <= share else _cut(part, share)
        for part, size in zip(content, sizes, strict=True)
    ]


def _share(sizes: Sequence[int], bytes_max: int) -> int:
    """Return the size limit of each part, so that all of them fit."""
    left_bytes = bytes_max
    ascending = sorted(sizes)
    for place, size in enumerate(ascending):
        share = left_bytes // (len(ascending) - place)
        if size > share:
            return share
        left_bytes -= size
    return ascending[-1]


def _text_of(part: Part) -> str:
    match part:
        case Text(text=text) | Reasoning(text=text) | FileReference(content=text):
            return text
        case ToolCall(args_json=text) | ToolResult(result_json=text):
            return text
        case _:
            return ""


def _cut(part: Part, bytes_max: int) -> Part:
    match part:
        case Text() | Reasoning():
            return replace(part, text=truncated(part.text, bytes_max))
        case FileReference():
            return replace(part, content=truncated(part.content, bytes_max))
        case ToolCall():
            return replace(part, args_json=_arguments(part.args_json, bytes_max))
        case ToolResult():
            result_json = truncated_json(without_large_bytes(part.result_json), bytes_max)
            return replace(part, result_json=result_json)
        case _:
            return part


def _arguments(args_json: str, bytes_max: int) -> str:
    try:
        return truncated_json(args_json, bytes_max)
    except ValueError:  # They are still being received.
        return args_json[: bytes_max // _WIDEST]
