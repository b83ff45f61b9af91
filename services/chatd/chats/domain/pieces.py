"""Published pieces of an answer, and their merging into parts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import msgspec

from chatd.chats.domain.call_decisions import INTERRUPTED
from chatd.chats.domain.chat import NewMessage, PendingCall
from chatd.chats.domain.tool_results import synthetic_result
from chatd.content.domain.arguments import is_kept, mended
from chatd.content.domain.messages import FinishReason, Role, Visibility
from chatd.content.domain.parts import (
    Fallback,
    Part,
    Reasoning,
    ServerTexts,
    Text,
    ToolCall,
    ToolResult,
)
from chatd.content.domain.truncation import repaired
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId

CHAT_SUMMARIZED = "chat_summarized"


class Piece(msgspec.Struct, frozen=True):
    """One piece of an answer.

    Text, reasoning and arguments are pieces that are appended to those with the same index. A call
    without a time is a piece of its arguments; with one it is complete and replaces the pieces.
    """

    role: Role
    part_index: int
    part: Part


def joined(pieces: Iterable[Piece]) -> tuple[Part, ...]:
    """Return the parts made of the model's pieces, in their order."""
    blocks: dict[int, list[Part]] = {}
    for piece in pieces:
        if piece.role is Role.ASSISTANT:
            blocks.setdefault(piece.part_index, []).append(piece.part)
    return tuple(_block(blocks[index]) for index in sorted(blocks))


def _block(parts: list[Part]) -> Part:
    """Merge the pieces of one part; the last one determines its kind."""
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
    """Return a finished answer as it is stored, without incomplete calls."""
    return tuple(
        storable_call(part) if isinstance(part, ToolCall) else part
        for part in parts
        if not isinstance(part, ToolCall) or part.created_at is not None
    )


def storable_call(call: ToolCall) -> ToolCall:
    """Return the call with arguments that are valid JSON; no arguments are an empty object."""
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
    """Return the stored messages of an answer that was interrupted, complete in themselves.

    Arguments that do not parse are dropped with their call; open calls get a result that says that
    they were interrupted. The rest of a summary is visible to users only.
    """
    kept = tuple(_as_interrupted(part, at) for part in parts if _is_kept(part))
    if all(isinstance(part, Fallback | ServerTexts) for part in kept):
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
    """Return the result of a call that was cancelled for `reason`."""
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


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive pieces of one episode."""

    chat_id: ChatId
    history_version: int
    generation_attempt: int
    first_seq: int
    pieces: tuple[Piece, ...]


class PartialStore(Protocol):
    """The store of partial answers."""

    async def add(self, chunks: tuple[Chunk, ...]) -> None:
        """Store chunks."""
        ...
