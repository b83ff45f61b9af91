"""Merging of consecutive pieces of an answer."""

import msgspec

from chatd.content.domain.parts import (
    Part,
    Reasoning,
    StreamedPart,
    Text,
    ToolCall,
    ToolResult,
    ToolResultDelta,
)

# What a delta without text counts: it is sent and kept as well.
DELTA_BYTES = 64


def joined_pieces(first: Part, second: Part) -> Part | None:
    """Return two consecutive pieces of one part as one piece; None if they cannot be merged.

    A piece with provider metadata, an end time or a completed call closes its part. A closing piece
    may be merged into the pieces before it, unless the merge would hide which of two ends it was.
    """
    match first, second:
        case Text(text, ""), Text(more, ""):
            return Text(text + more)
        case Reasoning(text, began_at, None, ""), Reasoning(more, None, completed_at, metadata):
            return Reasoning(text + more, began_at, completed_at, metadata)
        case ToolCall(created_at=None), ToolCall(created_at=None) if (
            first.tool_call_id == second.tool_call_id
        ):
            return msgspec.structs.replace(second, args_json=first.args_json + second.args_json)
        case _:
            return None


def is_piece(part: Part) -> bool:
    """Return whether more pieces of the same part may follow, so that it can wait to be merged."""
    match part:
        case Text(_, ""):
            return True
        case Reasoning(completed_at=None, provider_metadata=""):
            return True
        case ToolCall(created_at=None):
            return True
        case _:
            return False


def joined_deltas(first: ToolResultDelta, second: ToolResultDelta) -> ToolResultDelta:
    """Return two consecutive deltas of one call as one."""
    return msgspec.structs.replace(
        second,
        text=second.text if second.is_reset else first.text + second.text,
        is_reset=first.is_reset or second.is_reset,
        process_id=second.process_id or first.process_id,
        progress=second.progress or first.progress,
    )


def size_of(part: StreamedPart) -> int:
    """Return the approximate size of a piece in bytes."""
    match part:
        case Text(text) | Reasoning(text):
            return _utf8_length(text)
        case ToolCall(args_json=text) | ToolResult(result_json=text):
            return _utf8_length(text)
        case ToolResultDelta(text=text):
            return DELTA_BYTES + _utf8_length(text)
        case _:
            return 0


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
