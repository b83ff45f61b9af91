"""Notifications: which changes of a chat are notified, and what a device shows of them."""

import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, assert_never

from chatd.chats.domain.chat import ChatState, Message, PendingCall, Status
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.turns.domain.turn import Ending, TurnEnded

TITLE_CHARACTERS_MAX: Final = 120
BODY_CHARACTERS_MAX: Final = 240
PAYLOAD_BYTES_MAX: Final = 3072
TTL_S: Final = 24 * 3600

#: Calls that no person answers: programs submit results, and agents end by themselves.
_NOT_FOR_PEOPLE: Final = frozenset({PendingKind.DISPATCHED, PendingKind.CLIENT, PendingKind.AGENTS})

_FENCE_LINE: Final = re.compile(r"^\s*(?:```|~~~).*$", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_LINE_MARK: Final = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+)", re.MULTILINE)
_INLINE_MARK: Final = re.compile(r"\*{1,3}|`+|~~|(?<!\w)_{1,3}|_{1,3}(?!\w)")
_SPACE: Final = re.compile(r"\s+")


class NotificationKind(StrEnum):
    """Why a device is notified."""

    FINISHED = "finished"
    FAILED = "failed"
    ASKS = "asks"
    TEST = "test"


class Urgency(StrEnum):
    """How urgent a message is for the battery of a device, in words of RFC 8030."""

    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """A change of a chat that its owner is told, unless the chat has changed again.

    Attributes:
        history_version: The version at which it happened.
        text: The answer, the question or the error; empty if there is none.
        owner_id: The owner, if that is known.
        tool_call_id: The call that asks, if its question is only in the history.
    """

    kind: NotificationKind
    chat_id: ChatId
    history_version: int
    text: str
    owner_id: OwnerId | None = None
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class Notification:
    """What a device shows, and where it leads."""

    kind: NotificationKind
    title: str
    body: str
    path: str
    chat_id: str = ""

    @property
    def urgency(self) -> Urgency:
        """Return how urgent it is: something waits for a question."""
        is_asked = self.kind in (NotificationKind.ASKS, NotificationKind.TEST)
        return Urgency.HIGH if is_asked else Urgency.NORMAL


TEST: Final = Notification(
    NotificationKind.TEST, "Parley", "Notifications work on this device.", "/settings"
)


def after_turn(ended: TurnEnded) -> ChatEvent | None:
    """Return what is told of the end of a turn; None for nothing."""
    state = ended.state
    match ended.ending:
        case Ending.FINISHED:
            # Otherwise a queued message continues, or another end is told.
            if state.status is not Status.WAITING or not ended.text.strip():
                return None
            return _event(NotificationKind.FINISHED, state, ended.text, ended.owner.id)
        case Ending.FAILED:
            return after_failure(state, ended.owner.id)
        case Ending.ASKED_CLIENT:
            asked = next(filter(_is_for_people, state.pending), None)
            if state.status is not Status.REQUIRES_ACTION or asked is None:
                return None
            event = _event(NotificationKind.ASKS, state, _question_of(asked), ended.owner.id)
            is_in_history = asked.kind is PendingKind.QUESTION
            return replace(event, tool_call_id=asked.tool_call_id) if is_in_history else event
        case Ending.INTERRUPTED:
            return None
        case _:
            assert_never(ended.ending)


def after_failure(state: ChatState, owner_id: OwnerId | None = None) -> ChatEvent | None:
    """Return what is told of a chat whose turn failed; None if it did not."""
    if state.status is not Status.ERROR or state.last_error is None:
        return None
    return _event(NotificationKind.FAILED, state, state.last_error.message, owner_id)


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """What is stored of a chat when its owner is about to be told.

    Attributes:
        has_goal: Whether a goal may continue the chat by itself.
        is_scheduled: Whether a schedule sent the message of its last turn, and sends more.
    """

    owner_id: OwnerId
    title: str
    is_root: bool
    is_archived: bool
    status: Status
    history_version: int
    queue_length: int
    has_goal: bool = False
    is_scheduled: bool = False


class Verdict(StrEnum):
    """What is done with an event."""

    TELL = "tell"
    WAIT = "wait"  # It is not known yet whether the chat continues by itself.
    DROP = "drop"


_STATUS: Final = {
    NotificationKind.FINISHED: Status.WAITING,
    NotificationKind.FAILED: Status.ERROR,
    NotificationKind.ASKS: Status.REQUIRES_ACTION,
}


def verdict_of(event: ChatEvent, facts: ChatFacts) -> Verdict:
    """Return whether the owner of a chat is told: it is their own, visible, and as it was."""
    is_unchanged = facts.status is _STATUS[event.kind] and (
        facts.history_version == event.history_version
    )
    if not is_unchanged or not facts.is_root or facts.is_archived:
        return Verdict.DROP
    if event.kind is NotificationKind.FINISHED:
        if facts.is_scheduled or facts.queue_length:
            return Verdict.DROP
        if facts.has_goal:
            return Verdict.WAIT
    return Verdict.TELL


def notification_of(event: ChatEvent, title: str, label: str = "") -> Notification:
    """Return what a device shows of an event.

    Args:
        event: The event.
        title: The title of the chat.
        label: The label of the turn, which says more in less words; empty for none.
    """
    return Notification(
        event.kind,
        shortened(title, TITLE_CHARACTERS_MAX),
        shortened(label or plain_text(event.text) or _WORDS[event.kind], BODY_CHARACTERS_MAX),
        f"/chats/{event.chat_id}",
        event.chat_id,
    )


_WORDS: Final = {
    NotificationKind.FINISHED: "The answer is ready.",
    NotificationKind.FAILED: "The turn ended with an error.",
    NotificationKind.ASKS: "Your answer is needed.",
    NotificationKind.TEST: "",
}


def payload_of(notification: Notification) -> bytes:
    """Return the JSON that a device decrypts; its texts are shortened until it fits."""
    characters_max = BODY_CHARACTERS_MAX
    while True:
        body = shortened(notification.body, characters_max)
        fields = {
            "kind": notification.kind.value,
            "chat_id": notification.chat_id,
            "title": shortened(notification.title, characters_max),
            "body": body,
            "path": notification.path,
        }
        payload = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
        if len(payload) <= PAYLOAD_BYTES_MAX:
            return payload
        characters_max //= 2


def plain_text(text: str) -> str:
    """Return a text without the marks of Markdown, on one line."""
    bare = _LINE_MARK.sub("", _LINK.sub(r"\1", _FENCE_LINE.sub("", text)))
    return _SPACE.sub(" ", _INLINE_MARK.sub("", bare)).strip()


def shortened(text: str, characters_max: int) -> str:
    """Return a text of at most so many characters, with a mark where it was cut."""
    return text if len(text) <= characters_max else f"{text[: characters_max - 1].rstrip()}…"


def question_in(answer: Message | None, tool_call_id: str) -> str:
    """Return the first question that a call of an answer asks; empty if there is none."""
    parts = () if answer is None else answer.content
    for part in parts:
        if isinstance(part, ToolCall) and part.tool_call_id == tool_call_id:
            try:
                return str(json.loads(part.args_json)["questions"][0]["question"])
            except (ValueError, LookupError, TypeError):
                return ""
    return ""


def _event(
    kind: NotificationKind, state: ChatState, text: str, owner_id: OwnerId | None
) -> ChatEvent:
    return ChatEvent(kind, state.chat_id, state.history_version, text, owner_id)


def _is_for_people(call: PendingCall) -> bool:
    return not call.is_recorded and call.kind not in _NOT_FOR_PEOPLE


def _question_of(call: PendingCall) -> str:
    """Return what a call asks, in words that are with the state of its chat."""
    if call.question is not None and call.question.message:
        return call.question.message
    match call.kind:
        case PendingKind.APPROVAL | PendingKind.LOOP:
            return f"May {call.tool_name} run? {call.reason}".strip()
        case PendingKind.PLAN:
            return "A plan waits for your decision."
        case PendingKind.LOGIN:
            return "A sign-in is needed."
        case _:
            return "A question waits for your answer."
