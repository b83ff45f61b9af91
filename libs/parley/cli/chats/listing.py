"""Paths, lists and printed forms of chats."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from parley.cli.api.client import Api
from parley.cli.api.requests import PAGE_MAX, listed
from parley.cli.chats.answer import cut_words, notice_lines
from parley.cli.text import sanitized

CHATS = "/api/v1/chats"
TITLE_CHARACTERS_MAX = 60
WAITING, IDLE = "waiting", "idle"
PERSON = "person"
#: What the origin of a message is called, as at the page.
SENDERS: Mapping[str, str] = {
    "program": "a program",
    "goal": "the goal",
    "monitor": "a monitor",
    "schedule": "a schedule",
    "agent": "the chat that this agent works for",
    "hook": "a hook",
    "system": "Parley",
}


def chat_path(chat_id: str) -> str:
    """Return the path of a chat, with the id escaped."""
    return f"{CHATS}/{quote(chat_id, safe='')}"


def list_chats(api: Api, filters: Mapping[str, str], *, count: int) -> Iterator[dict[str, Any]]:
    """Yield the first `count` chats, page by page."""
    return listed(api, CHATS, filters, count=count)


def children_of(api: Api, root: Any) -> list[Any]:
    """Return all chats below a root, of which an answer has some."""
    children = list(root.get("children") or ())
    while root.get("has_more_children"):
        path = f"{chat_path(str(root['id']))}?children_after={children[-1]['id']}"
        root = api.call("GET", path, needs="id")
        children += root.get("children") or ()
    return children


def last_messages(api: Api, chat_id: str, *, count: int) -> dict[str, Any]:
    """Return the last `count` messages, oldest first, and the queued ones."""
    path, before_id = f"{chat_path(chat_id)}/messages", 0
    messages: list[dict[str, Any]] = []
    queued: list[dict[str, Any]] = []
    while len(messages) < count:
        bound = {"before_id": before_id} if before_id else {}
        query = urlencode({"limit": min(count - len(messages), PAGE_MAX), **bound})
        page = api.call("GET", f"{path}?{query}", needs="messages")
        queued = queued or page.get("queued_messages", [])
        messages += page["messages"]
        if not page.get("has_more") or not page["messages"]:
            break
        before_id = messages[-1]["id"]
    return {"messages": messages[::-1], "queued_messages": queued}


def status_word(chat: Mapping[str, Any]) -> str:
    """Return the status of a chat as people read it: one that rests is idle, it waits for nothing.

    The API calls this status `waiting`.
    """
    status = str(chat.get("status"))
    return IDLE if status == WAITING else status


def row_of(chat: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a chat as a row: id, status, when it changed, title."""
    status = status_word(chat)
    marks = "".join(
        mark
        for mark, is_set in (("*", chat.get("has_unread")), ("^", chat.get("pin_order")))
        if is_set
    )
    changed_at = str(chat.get("updated_at") or "-")[:19].replace("T", " ")
    return str(chat.get("id")), status + marks, changed_at, one_line(str(chat.get("title") or ""))


def one_line(text: str) -> str:
    """Return a text as one short line without control characters."""
    words = sanitized(" ".join(text.split()))
    return words if len(words) <= TITLE_CHARACTERS_MAX else words[: TITLE_CHARACTERS_MAX - 1] + "…"


def message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show one message."""
    yield f"--- {message.get('role')} {message.get('id')}{_sender_words(message)}"
    for part in message.get("content", ()):
        yield from _part_lines(part)
    if (cut := cut_words(message)) is not None:
        yield f"({cut})"


def queued_lines(queued: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show a queued message."""
    yield f"--- queued {queued.get('id')}{_sender_words(queued)}"
    for part in queued.get("content", ()):
        yield from _part_lines(part)


def _sender_words(message: Mapping[str, Any]) -> str:
    """Return what sent a message, if no person did."""
    origin = message.get("origin")
    return "" if origin in (None, PERSON) else f", sent by {SENDERS.get(origin, origin)}"


def _part_lines(part: Mapping[str, Any]) -> Iterator[str]:
    match part.get("type"):
        case "fallback":
            yield f"! {part.get('model_id')} answers: {part.get('text')}"
        case "notice":
            yield from notice_lines({"content": [part]})
        case "text":
            yield from str(part.get("text", "")).splitlines()
        case "reasoning":
            for line in str(part.get("text", "")).splitlines():
                yield f"> {line}"
        case "tool-call":
            arguments = json.dumps(part.get("args") or {}, ensure_ascii=False)
            yield f"o {part.get('tool_name')} {arguments}"
        case "tool-result":
            mark = "✗" if part.get("is_error") else "✓"
            result = part.get("result")
            shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            yield f"{mark} {part.get('tool_name')} {shown}"
        case kind:
            named = part.get("name") or part.get("file_name") or part.get("url") or ""
            yield f"[{kind}] {named}".rstrip()
