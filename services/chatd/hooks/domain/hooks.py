"""Hooks, the events that they are for, and what is sent about them."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from chatd.primitives.domain.ids import ChatId, OwnerId

HOOKS_MAX = 20
SCHEMA_VERSION = 1
TIMEOUT_MS = 1500
VALUE_CHARACTERS_MAX = 65_536


class HookEvent(StrEnum):
    """An event that hooks are told of."""

    SESSION_START = "session_start"
    USER_PROMPT_SUBMIT = "user_prompt_submit"
    PRE_TOOL_USE = "pre_tool_use"
    POST_TOOL_USE = "post_tool_use"
    PRE_COMPACT = "pre_compact"
    POST_COMPACT = "post_compact"
    STOP = "stop"


#: Events that a hook may refuse, or whose input it may replace; all others are only told.
DECIDED = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.PRE_TOOL_USE})
TOOL_EVENTS = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE})


@dataclass(frozen=True, slots=True)
class Hook:
    """A consumer of events.

    Attributes:
        owner_id: Whose chats it is for; empty for all chats, by an administrator.
        url: Where events are sent.
        events: The events that it is told of.
        tools: Patterns of tool names for events of tools, such as `github__*`; empty for all.
        timeout_ms: How long its answer is waited for.
        fails_open: Whether a failure is ignored; otherwise it ends the operation.
    """

    id: str
    owner_id: str
    url: str
    events: frozenset[HookEvent]
    tools: tuple[str, ...] = ()
    timeout_ms: int = TIMEOUT_MS
    fails_open: bool = False
    created_at: datetime | None = None

    def matches(self, event: HookEvent, tool_name: str) -> bool:
        """Return whether it is told of an event."""
        if event not in self.events:
            return False
        if event not in TOOL_EVENTS or not self.tools:
            return True
        return any(fnmatchcase(tool_name, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event of a chat.

    Attributes:
        key: Tells it from other events of its kind in the chat, also after a crash.
        data: What happened, as JSON values.
    """

    event: HookEvent
    chat_id: ChatId
    owner_id: OwnerId
    key: str
    data: Mapping[str, object] = field(default_factory=dict)
    tool_name: str = ""
    turn_id: int = 0
    root_chat_id: str = ""
    parent_chat_id: str = ""

    @property
    def dispatch_id(self) -> str:
        """Return the id that consumers recognise a repetition by; other data have another one."""
        digest = hashlib.sha256(_json(self.data)).hexdigest()
        return str(uuid.uuid5(uuid.UUID(self.chat_id), f"hook {self.event} {self.key} {digest}"))

    def payload(self, data: Mapping[str, object], *, is_changed: bool) -> bytes:
        """Return what is sent, with these data in place of its own."""
        return _json(
            {
                "type": self.event.value,
                "dispatch_id": self.dispatch_id,
                "schema_version": SCHEMA_VERSION,
                "chat_id": self.chat_id,
                "owner_id": self.owner_id,
                "root_chat_id": self.root_chat_id or self.chat_id,
                "parent_chat_id": self.parent_chat_id or None,
                "turn_id": self.turn_id or None,
                "data": data,
                # Whether secrets or the ends of long texts are missing.
                "is_shortened": is_changed,
            }
        )


def bounded(value: object) -> object:
    """Return a JSON value in which the end of every long text is cut off."""
    match value:
        case str():
            return value[:VALUE_CHARACTERS_MAX]
        case Mapping():
            return {str(name): bounded(each) for name, each in value.items()}
        case list() | tuple():
            return [bounded(each) for each in value]
        case _:
            return value


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
