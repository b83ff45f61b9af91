"""Renders a chat's events: its text, its tools, and how the turn ended.

Live parts are previews of messages. Text that a preview already showed is not shown again when its
message arrives; the rest is. A message is shown once, however often a resumed stream repeats it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from parley.cli.api.events import ServerEvent
from parley.cli.chats.running_calls import RunningCalls

TOOL_ARGUMENTS_MAX = 200
#: Kind of part -> the fields that only a complete one has.
FIELDS_WHEN_COMPLETE: Mapping[str, frozenset[str]] = {
    "tool-call": frozenset({"args"}),
    "tool-result": frozenset({"result", "outcome", "is_error"}),
}


#: Reason for which an answer ended -> its text; other reasons mean that it is complete.
CUT: Mapping[str, str] = {
    "length": "cut: length limit reached",
    "content_filter": "cut: content policy of the provider",
    "interrupted": "cut: interrupted",
}


FALLBACK = "fallback_model_id"
#: Roles of the messages that are always shown; those of the system have notices.
ROLES = ("assistant", "tool", "system")


class Ending(StrEnum):
    """How a turn can end, as values of the chat's status."""

    WAITING = "waiting"
    ERROR = "error"
    REQUIRES_ACTION = "requires_action"


@dataclass(frozen=True, slots=True)
class Text:
    """A part of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line about progress."""

    line: str


Shown = Text | Note


@dataclass(slots=True)
class Answer:
    """The answer to one prompt while it arrives."""

    ending: Ending | None = None
    problem: str | None = None
    #: Whether messages of users are shown too.
    shows_users: bool = False
    _preview: str = ""
    _is_mid_line: bool = False
    _messages: set[str] = field(default_factory=set)
    _tools: set[tuple[str, str]] = field(default_factory=set)
    _running: RunningCalls = field(default_factory=RunningCalls)

    def take(self, event: ServerEvent) -> list[Shown]:
        """Process one event; return the output that it adds."""
        payload = event.data.get(event.type, event.data)
        match event.type:
            case "message_part" if payload.get("role", "assistant") == "assistant":
                return self._take_part(payload.get("part", payload))
            case "message_part":
                return self._take_tool(payload.get("part", payload))
            case "message":
                return self._take_message(payload)
            case "preview_reset" | "history_reset":
                self._preview = ""
                self._running.restart()
                return self._end_line()
            case "retry":
                delay_s, model_id = payload.get("delay_ms", 0) / 1000, payload.get(FALLBACK)
                way = f"continuing with {model_id}" if model_id else f"retrying in {delay_s:g} s"
                return [*self._end_line(), Note(f"{way}: {_words(payload.get('error', {}))}")]
            case "error":
                self.problem = _words(payload)
            case "status":
                self._take_status(payload)
        return self._end_line() if self.ending else []

    def _take_status(self, payload: Any) -> None:
        status = payload.get("status") if isinstance(payload, dict) else payload
        if status in list(Ending):
            self.ending = Ending(status)

    def _take_part(self, part: dict[str, Any]) -> list[Shown]:
        if part.get("type") != "text":
            return self._take_tool(part)
        text = part.get("text", "")
        self._preview += text
        return self._write(text)

    def _take_message(self, message: dict[str, Any]) -> list[Shown]:
        key = str(message.get("id"))
        roles = (*ROLES, "user") if self.shows_users else ROLES
        if message.get("role") not in roles or key in self._messages:
            return []
        self._messages.add(key)
        if message.get("role") == "user":
            said = [*(f"> {line}" for line in _said(message)), *notice_lines(message)]
            return [*self._end_line(), *map(Note, said)]
        parts = [part for part in message.get("content", ()) if isinstance(part, dict)]
        whole = "".join(part.get("text", "") for part in parts if part.get("type") == "text")
        shown: list[Shown] = []
        if whole:
            if not whole.startswith(self._preview):
                shown += self._end_line()
                self._preview = ""
            shown += self._write(whole[len(self._preview) :])
            self._preview = ""
            shown += self._end_line()
        for part in parts:
            shown += self._take_tool(part, is_committed=True)
        if notices := notice_lines(message):
            shown += [*self._end_line(), *map(Note, notices)]
        if (cut := cut_words(message)) is not None:
            shown += [*self._end_line(), Note(cut)]
        return shown

    def _take_tool(self, part: dict[str, Any], *, is_committed: bool = False) -> list[Shown]:
        kind, call = str(part.get("type")), str(part.get("tool_call_id"))
        # While a call's arguments are incomplete, nothing is shown.
        is_whole = is_committed or not FIELDS_WHEN_COMPLETE.get(kind, frozenset()).isdisjoint(part)
        if kind not in FIELDS_WHEN_COMPLETE or (kind, call) in self._tools:
            return []
        if not is_whole:
            lines = self._running.take(part) if kind == "tool-result" else []
            return [*self._end_line(), *map(Note, lines)] if lines else []
        self._tools.add((kind, call))
        name = part.get("tool_name", "tool")
        if kind == "tool-call":
            return [*self._end_line(), Note(f"o {name} {_brief(part.get('args'))}".rstrip())]
        before = [*self._end_line(), *map(Note, self._running.end(call))]
        if not part.get("is_error"):
            return [*before, Note(f"✓ {name}")]
        return [*before, Note(f"✗ {name} {_reason(part.get('result'))}".rstrip())]

    def _write(self, text: str) -> list[Shown]:
        if not text:
            return []
        self._is_mid_line = not text.endswith("\n")
        return [Text(text)]

    def _end_line(self) -> list[Shown]:
        return self._write("\n") if self._is_mid_line else []


def notice_lines(message: Mapping[str, Any]) -> list[str]:
    """Return the lines that show the notices of a message, each with the hook that gave it."""
    lines: list[str] = []
    for part in message.get("content", ()):
        if isinstance(part, dict) and part.get("type") == "notice":
            hook = f"{part['hook_name']}: " if part.get("hook_name") else ""
            lines += [f"! {hook}{line}" for line in str(part.get("text", "")).splitlines()]
    return lines


def cut_words(message: Mapping[str, Any]) -> str | None:
    """Return why an answer is incomplete, None if it is complete or the reason is unknown."""
    return CUT.get(str(message.get("finish_reason")))


def _words(payload: dict[str, Any]) -> str:
    said = payload.get("message") or payload.get("detail") or payload.get("error")
    return str(said or payload.get("title") or payload.get("kind") or "unknown problem")


def _said(message: dict[str, Any]) -> list[str]:
    parts = [part for part in message.get("content", ()) if isinstance(part, dict)]
    said = (part.get("text", "") for part in parts if part.get("type") != "notice")
    return "".join(said).splitlines()


def _brief(arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    text = "" if text == "{}" else " ".join(text.split())
    return text if len(text) <= TOOL_ARGUMENTS_MAX else text[:TOOL_ARGUMENTS_MAX] + "…"


def _reason(result: Any) -> str:
    """Return why a tool failed, if its result says so."""
    if isinstance(result, str):
        try:
            result = json.loads(result)
        except ValueError:
            return _brief(result)
    said = result.get("error") if isinstance(result, dict) else None
    return _brief(said) if isinstance(said, str) else ""
