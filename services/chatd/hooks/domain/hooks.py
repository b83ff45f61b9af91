"""Hooks, the events that they are for, and what is sent about them."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

HOOKS_MAX = 10
SCHEMA_VERSION = 1
TIMEOUT_MS = 1500
VALUE_CHARACTERS_MAX = 65_536


class HookEvent(StrEnum):
    """An event that hooks get."""

    SESSION_START = "session_start"
    USER_PROMPT_SUBMIT = "user_prompt_submit"
    PRE_TOOL_USE = "pre_tool_use"
    POST_TOOL_USE = "post_tool_use"
    PRE_COMPACT = "pre_compact"
    POST_COMPACT = "post_compact"
    STOP = "stop"


class FailPolicy(StrEnum):
    """What happens to an operation when its hook fails."""

    CLOSED = "closed"  # It fails too.
    OPEN = "open"  # It goes on.


#: Events that a hook may refuse, with the name of the input that it may replace. Beside them it may
#: refuse `stop`, which has no input; all others are notifications.
INPUTS = {HookEvent.USER_PROMPT_SUBMIT: "prompt", HookEvent.PRE_TOOL_USE: "tool_input"}
TOOL_EVENTS = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE})


@dataclass(frozen=True, slots=True)
class Hook:
    """A consumer of events of all chats.

    Attributes:
        url: Where events are sent.
        events: The events that it gets.
        tools: Patterns of tool names for events of tools, such as `github__*`; empty for all.
        timeout_ms: How long its answer is waited for.
        previous_secret_until: Until when requests are signed with the previous secret as well.
    """

    id: str
    name: str
    url: str
    events: frozenset[HookEvent]
    tools: tuple[str, ...] = ()
    timeout_ms: int = TIMEOUT_MS
    fail_policy: FailPolicy = FailPolicy.CLOSED
    is_disabled: bool = False
    version: int = 1
    created_at: datetime | None = None
    previous_secret_until: datetime | None = None

    def matches(self, event: HookEvent, tool_name: str) -> bool:
        """Return whether it gets an event."""
        if self.is_disabled or event not in self.events:
            return False
        if event not in TOOL_EVENTS or not self.tools:
            return True
        return any(fnmatchcase(tool_name, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class HookNotice:
    """What a turn did, for an event that hooks do not decide on; see `Occurrence`."""

    event: HookEvent
    key: str
    data: Mapping[str, object]
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event of a chat.

    Attributes:
        chat_id: The chat; empty for a test.
        key: Distinguishes it from other events of its kind in the chat. It is made of stored
            values, so that another process which repeats the event makes the same.
        data: What happened, as JSON values.
        workspace_id: The workspace that was chosen for the chat or its root; empty for none.
    """

    event: HookEvent
    chat_id: str
    owner_id: str
    key: str
    data: Mapping[str, object] = field(default_factory=dict)
    tool_name: str = ""
    turn_id: int = 0
    root_chat_id: str = ""
    parent_chat_id: str = ""
    workspace_id: str = ""

    @property
    def dispatch_id(self) -> str:
        """Return the id that consumers recognise a repetition by, formatted as a UUID.

        An event with other data has another id.
        """
        named = _json([self.chat_id, self.event.value, self.key, self.data])
        digest = hashlib.sha256(named).hexdigest()
        return "-".join(
            (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]),
        )

    def payload(self, data: object, *, is_shortened: bool) -> bytes:
        """Return what is sent, with these data in place of its own."""
        return _json(
            {
                "type": self.event.value,
                "dispatch_id": self.dispatch_id,
                "schema_version": SCHEMA_VERSION,
                "is_test": not self.chat_id,
                "chat_id": self.chat_id or None,
                "owner_id": self.owner_id or None,
                "root_chat_id": self.root_chat_id or self.chat_id or None,
                "parent_chat_id": self.parent_chat_id or None,
                "workspace_id": self.workspace_id or None,
                "turn_id": self.turn_id or None,
                "data": data,
                "is_shortened": is_shortened,
            }
        )


def sample_occurrence(event: HookEvent, key: str) -> Occurrence:
    """Return an event with invented data, which tests whether a consumer answers."""
    tool = {"tool_use_id": "test", "tool_name": "test_tool"}
    data: Mapping[HookEvent, Mapping[str, object]] = {
        HookEvent.SESSION_START: {"source": "startup"},
        HookEvent.USER_PROMPT_SUBMIT: {"prompt": "This is a test.", "parts": 1},
        HookEvent.PRE_TOOL_USE: {**tool, "tool_input": {}},
        HookEvent.POST_TOOL_USE: {**tool, "outcome": "done", "tool_response": "{}"},
        HookEvent.PRE_COMPACT: {"source": "manual"},
        HookEvent.POST_COMPACT: {"source": "manual"},
        HookEvent.STOP: {"continued": False},
    }
    return Occurrence(event, "", "", key, data[event])


def sendable(value: object, clean: Callable[[str], str]) -> object:
    """Return a JSON value in which secrets are masked and long texts are cut off."""
    match value:
        case str():
            return clean(value)[:VALUE_CHARACTERS_MAX]
        case Mapping():
            return {clean(str(name)): sendable(each, clean) for name, each in value.items()}
        case list() | tuple():
            return [sendable(each, clean) for each in value]
        case _:
            return value


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")
