"""Actions as stored, and their errors."""

from dataclasses import dataclass
from datetime import datetime

from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId


@dataclass(frozen=True, slots=True)
class StoredAction:
    """Something that a chat asked, and how it ended.

    Attributes:
        message_id: The message with the call that asks.
        args_json: The arguments of the call: the questions, the plan, or what would run.
        mode: The mode of the turn that asked.
        asked_at: When the chat began to wait; None if it did not come to that.
        outcome: None while it is open.
        ended_by: The user who answered; empty if nobody did.
        answer_json: What was answered.
    """

    id: ExecutionId
    chat_id: ChatId
    message_id: MessageId
    tool_call_id: str
    tool_name: str
    mcp_server_id: str
    kind: PendingKind
    args_json: str
    reason: str
    mode: ChatMode
    asked_at: datetime | None
    deadline_at: datetime | None
    ended_at: datetime | None
    outcome: ActionOutcome | None
    ended_by: str
    answer_json: str
    chat_title: str = ""

    @property
    def call(self) -> ToolCall:
        """The call that asks, or that needs a permission."""
        return ToolCall(self.tool_call_id, self.tool_name, self.args_json, self.mcp_server_id)


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call of which it is not known whether it ran.

    Attributes:
        root_chat_id: The chat whose next message takes it off the list; often the same one.
        message_id: The message with the call.
        ended_at: When its outcome was given up.
    """

    chat_id: ChatId
    root_chat_id: ChatId
    chat_title: str
    message_id: MessageId
    tool_call_id: str
    tool_name: str
    args_json: str
    ended_at: datetime


class ActionNotFound(ChatError):
    """The chat never asked this."""

    def __init__(self, chat_id: str, action_id: str) -> None:
        super().__init__(f"no action {action_id}")
        self.chat_id = chat_id
        self.action_id = action_id


class ActionEnded(ChatError):
    """The action was answered, expired or was cancelled before."""

    def __init__(self, action: StoredAction) -> None:
        super().__init__(f"action {action.id} is {action.outcome}")
        self.action = action


class PlanNotFound(ChatError):
    """No plan was proposed in the chat."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"chat {chat_id} has no plan")
        self.chat_id = chat_id
