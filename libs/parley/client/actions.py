"""Actions: what chats wait for, and the answers to it, as values for callers."""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class ActionKind(StrEnum):
    """What kind of answer a chat waits for."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    CLIENT_TOOL = "client_tool"
    QUESTION = "question"
    PLAN = "plan"
    APPROVAL = "approval"
    LOOP = "loop"
    LOGIN = "login"
    ELICITATION = "elicitation"
    AGENTS = "agents"


class ActionState(StrEnum):
    """Whether an action is open, or how it ended."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class ActionDecision(StrEnum):
    """What a person decides about a plan or a call."""

    ACCEPT = "accept"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a chat waits for, or waited for.

    Attributes:
        id: The id to answer it with; empty for calls of clients that an older version stored.
        chat_id: The chat.
        kind: What kind of answer it needs.
        tool_call_id: The tool call that asks.
        tool_name: The called tool.
        args_json: The arguments of the call: the questions, the plan, what would run, or what it
            asks while it runs.
        reason: Why permission is asked for; may be empty.
        state: Whether it is open.
        deadline_at: When it ends unanswered; None if it waits for ever.
        asked_at: When the chat began to wait; None in events and in the chat.
        ended_at: When it ended.
        ended_by: The user who answered; may be empty.
        answer_json: What was answered; may be empty.
        chat_title: The title of the chat; only in lists.
        arguments_digest: Digest of tool, server and arguments; empty in events and in the chat.
    """

    id: str
    chat_id: str
    kind: ActionKind
    tool_call_id: str
    tool_name: str
    args_json: str
    reason: str = ""
    state: ActionState = ActionState.OPEN
    deadline_at: datetime | None = None
    asked_at: datetime | None = None
    ended_at: datetime | None = None
    ended_by: str = ""
    answer_json: str = ""
    chat_title: str = ""
    arguments_digest: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as Python values."""
        decoded: dict[str, Any] = json.loads(self.args_json)
        return decoded


@dataclass(frozen=True, slots=True)
class EndedAction:
    """How an action ended that a chat waited for.

    Attributes:
        id: The id of the action.
        kind: What kind of answer it needed.
        tool_call_id: The tool call that asked.
        tool_name: The called tool.
        state: Whether it was answered, expired or was cancelled.
        ended_at: When it ended.
        ended_by: The user who answered; may be empty.
    """

    id: str
    kind: ActionKind
    tool_call_id: str
    tool_name: str
    state: ActionState
    ended_at: datetime | None = None
    ended_by: str = ""


@dataclass(frozen=True, slots=True)
class ActionPage:
    """A page of open actions; `next_page_token` is empty at the end."""

    actions: tuple[Action, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The answer to one question: labels of its options, own words, or both."""

    selected: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class ActionAnswer:
    """An answer to an action.

    Attributes:
        decision: The decision about a plan, a call or what it asks; None for questions.
        remark: A remark for the model.
        answers: One for each question, in their order.
        plan: The plan as the person edited it; empty for as it was proposed.
        is_remembered: Whether an approval holds for the same call of the chat from now on.
        arguments_digest: The digest of the action that was shown; empty for no check.
        content_json: The content of a form that a running call asks for; empty for none.
    """

    decision: ActionDecision | None = None
    remark: str = ""
    answers: tuple[QuestionAnswer, ...] = ()
    plan: str = ""
    is_remembered: bool = False
    arguments_digest: str = ""
    content_json: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The newest plan of a chat.

    Attributes:
        action_id: The action that proposed it.
        title: The plan in a few words; may be empty.
        text: The plan, as a person edited it, else as it was proposed.
        state: Whether it waits, was answered, or ended otherwise.
        is_accepted: Whether it was accepted.
        proposed_at: When it was proposed.
    """

    action_id: str
    title: str
    text: str
    state: ActionState
    is_accepted: bool = False
    proposed_at: datetime | None = None
