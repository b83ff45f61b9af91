"""Pieces of an answer as they were shown, and what they come to when joined."""

import json
from collections.abc import Iterable
from datetime import datetime

import msgspec

from chatd.chats.domain.chat import NewMessage, PendingCall
from chatd.chats.domain.synthetic import synthetic_result
from chatd.chats.domain.transitions import INTERRUPTED
from chatd.content.domain.arguments import is_kept, mended
from chatd.content.domain.messages import FinishReason, Role, Visibility
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.truncation import repaired
from chatd.models.domain.model_use import ModelUse


class Piece(msgspec.Struct, frozen=True):
    """One piece of an answer.

    Text, thoughts and arguments come as pieces to append to what has the same index. A call
    without a time is a piece of its arguments; with one it is complete and replaces the pieces.
    """

    role: Role
    part_index: int
    part: Part


def joined(pieces: Iterable[Piece]) -> tuple[Part, ...]:
    """Return the parts that the model's pieces make, in their order."""
    blocks: dict[int, list[Part]] = {}
    for piece in pieces:
        if piece.role is Role.ASSISTANT:
            blocks.setdefault(piece.part_index, []).append(piece.part)
    return tuple(_block(blocks[index]) for index in sorted(blocks))


def _block(parts: list[Part]) -> Part:
    """Join the pieces of one part; the last of them says what it is."""
    match parts[-1]:
        case Text():
            texts = [part for part in parts if isinstance(part, Text)]
            return Text(
                repaired("".join(part.text for part in texts)),
                texts[-1].provider_metadata,
            )
        case Reasoning(completed_at=completed_at, provider_metadata=metadata):
            thoughts = [part for part in parts if isinstance(part, Reasoning)]
            return Reasoning(
                repaired("".join(part.text for part in thoughts)),
                thoughts[0].created_at,
                completed_at,
                metadata,
            )
        case ToolCall(created_at=None) as call:
            pieces = [part.args_json for part in parts if isinstance(part, ToolCall)]
            return msgspec.structs.replace(call, args_json="".join(pieces))
        case complete:
            return complete


def completed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return a finished answer as it is stored; calls that were begun and never made are out."""
    return tuple(
        storable_call(part) if isinstance(part, ToolCall) else part
        for part in parts
        if not isinstance(part, ToolCall) or part.created_at is not None
    )


def storable_call(call: ToolCall) -> ToolCall:
    """Return the call with arguments that are JSON: none given is an empty object."""
    if not call.args_json.strip():
        return msgspec.structs.replace(call, args_json="{}")
    args_json = repaired(call.args_json)
    if not is_kept(args_json):
        args_json = mended(args_json)
    return msgspec.structs.replace(call, args_json=args_json if is_kept(args_json) else "")


def interrupted_messages(
    parts: tuple[Part, ...],
    at: datetime,
    use: ModelUse | None,
    finish_reason: FinishReason | None = FinishReason.INTERRUPTED,
) -> tuple[NewMessage, ...]:
    """Return what is kept of an answer that was interrupted at some moment, complete in itself.

    Arguments that do not parse go with their call; calls that nobody will answer any more get a
    result that says so. What was left of a summary is for people only.
    """
    kept = tuple(_as_interrupted(part, at) for part in parts if _is_kept(part))
    if not kept:
        return ()
    answered = {part.tool_call_id for part in kept if isinstance(part, ToolResult)}
    calls = [
        part
        for part in kept
        if isinstance(part, ToolCall)
        and not part.provider_executed
        and part.tool_call_id not in answered
    ]
    is_summary = any(call.tool_name == CHAT_SUMMARIZED for call in calls)
    visibility = Visibility.USER if is_summary else Visibility.BOTH
    answer = NewMessage(
        Role.ASSISTANT, kept, visibility=visibility, use=use, finish_reason=finish_reason
    )
    results = tuple(
        NewMessage(Role.TOOL, (given_up(call, INTERRUPTED),), visibility=visibility)
        for call in calls
    )
    return (answer, *results)


def given_up(call: ToolCall, reason: str) -> ToolResult:
    """Return the result of a call that was given up for `reason`."""
    pending = PendingCall(call.tool_call_id, call.tool_name, mcp_server_id=call.mcp_server_id)
    return synthetic_result(pending, reason)


def _is_kept(part: Part) -> bool:
    if isinstance(part, ToolCall):
        return part.created_at is not None or is_kept(part.args_json)
    return True


def _as_interrupted(part: Part, at: datetime) -> Part:
    match part:
        case Reasoning(completed_at=None):
            return msgspec.structs.replace(part, completed_at=at)
        case ToolCall(created_at=created_at):
            return msgspec.structs.replace(storable_call(part), created_at=created_at or at)
        case _:
            return part


def is_json(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


CHAT_SUMMARIZED = "chat_summarized"
