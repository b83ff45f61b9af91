"""Forks: a chat copied up to a message. Calls without a result are given up in the copy."""

from collections.abc import Sequence
from dataclasses import dataclass

from chatd.chats.domain.chat import Message, PendingCall
from chatd.chats.domain.errors import MessageNotFound
from chatd.chats.domain.tool_results import synthetic_result
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.primitives.domain.ids import NO_MESSAGE, MessageId

FORKED = "The call was given up because the chat was copied before it had a result."


@dataclass(frozen=True, slots=True)
class Fork:
    """What a copy of a chat contains.

    Attributes:
        last_id: The last message that is copied.
        given_up: Results of the calls that have none up to there; they follow it.
        turn_id: The last message of a user.
    """

    last_id: MessageId
    given_up: tuple[ToolResult, ...]
    turn_id: MessageId

    @property
    def next_message_id(self) -> MessageId:
        """The id of the first message that is written in the copy."""
        return MessageId(self.last_id + len(self.given_up) + 1)


def fork_at(history: Sequence[Message], message_id: MessageId) -> Fork:
    """Return the copy of a history up to a message, or of all of it (0).

    Raises:
        MessageNotFound: There is no such message.
    """
    copied = [message for message in history if message.id <= message_id or not message_id]
    if not copied or (message_id and copied[-1].id != message_id):
        raise MessageNotFound(message_id)
    calls: dict[str, ToolCall] = {}
    for message in copied:
        for part in message.content:
            match part:
                case ToolCall(provider_executed=False):
                    calls[part.tool_call_id] = part
                case ToolResult():
                    calls.pop(part.tool_call_id, None)
                case _:
                    pass
    said = (message.id for message in reversed(copied) if message.role is Role.USER)
    return Fork(copied[-1].id, tuple(map(_given_up, calls.values())), next(said, NO_MESSAGE))


def _given_up(call: ToolCall) -> ToolResult:
    pending = PendingCall(call.tool_call_id, call.tool_name, None, call.mcp_server_id)
    return synthetic_result(pending, FORKED)
