"""Sends an agent's report that does not match its schema back to it, once in a turn.

That it was sent back is derived from the history, so another owner does not do it again.
"""

from collections.abc import Sequence
from typing import Final

from chatd.chats.domain.chat import ChatState, Message, NewMessage
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.orders import AgentOrders, checked_report
from chatd.content.domain.parts import Text, ToolCall

SENT_BACK: Final = "<invalid_report>"
END: Final = "</invalid_report>"


def returned_report(
    state: ChatState, history: Sequence[Message], orders: AgentOrders
) -> NewMessage | None:
    """Return the message that sends the report of a turn back; None if it can end."""
    if not orders.report_schema_json or not history:
        return None
    last = history[-1]
    calls = any(isinstance(part, ToolCall) for part in last.content)
    if last.role is not Role.ASSISTANT or last.id <= state.turn_id or calls:
        return None
    if any(_is_sent_back(message) for message in history if message.id > state.turn_id):
        return None
    problems = checked_report(_text_of(last), orders.report_schema_json).problems
    if not problems:
        return None
    lines = "\n".join(f"- {problem}" for problem in problems)
    text = (
        f"{SENT_BACK}\nYour report does not match its schema:\n{lines}\n"
        f"Answer once more, with nothing but the corrected JSON.\n{END}"
    )
    return NewMessage(Role.USER, (Text(text),), visibility=Visibility.MODEL)


def _is_sent_back(message: Message) -> bool:
    return message.visibility is Visibility.MODEL and _text_of(message).startswith(SENT_BACK)


def _text_of(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, Text))
