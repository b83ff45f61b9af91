"""Monitors in a real stack: a background process wakes the chat that started it, once."""

import json
from typing import Any

import pytest

from support.host.conditions import until
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

WAKE_S_MAX = 60.0


def events_of(stack: LocalStack, *arguments: str) -> list[Any]:
    """Run a command and return the messages that it prints."""
    ran = stack.parley(*arguments)
    assert ran.returncode == 0, ran.stderr
    events = map(json.loads, ran.stdout.splitlines())
    return [event["message"] for event in events if event["type"] == "message"]


def result_in(messages: list[Any]) -> Any:
    """Return the result of the last call."""
    parts = [part for message in messages for part in message["content"]]
    return [part["result"] for part in parts if part["type"] == "tool-result"][-1]


def started(stack: LocalStack, command: str) -> tuple[str, str]:
    """Start a background process in a new chat; return both."""
    arguments = json.dumps({"command": command, "run_in_background": True})
    messages = events_of(stack, "run", "--json", f"call: execute {arguments}")
    return messages[0]["chat_id"], result_in(messages)["process_id"]


def monitored(stack: LocalStack, chat_id: str, **arguments: Any) -> Any:
    call = f"call: monitor_process {json.dumps(arguments)}"
    return result_in(events_of(stack, "send", chat_id, "--json", call))


def monitors_of(stack: LocalStack, chat_id: str) -> list[Any]:
    told = stack.parley("monitor", "ls", chat_id, "--json")
    assert told.returncode == 0, told.stderr
    items: list[Any] = json.loads(told.stdout)["items"]
    return items


def said_in(stack: LocalStack, chat_id: str) -> list[str]:
    """Return the texts of the user's messages."""
    messages = json.loads(stack.parley("show", chat_id, "--json").stdout)["messages"]
    return [
        part["text"]
        for message in messages
        if message["role"] == "user"
        for part in message["content"]
    ]


def test_a_background_process_wakes_its_chat_once(stack: LocalStack) -> None:
    chat_id, process_id = started(stack, "while [ ! -e go ]; do sleep 0.2; done; echo all ready 7")
    made = monitored(stack, chat_id, process_id=process_id, pattern=r"ready \d", note="say: up")
    (waiting,) = monitors_of(stack, chat_id)
    assert (waiting["id"], waiting["state"]) == (made["monitor_id"], "waiting")
    events_of(stack, "send", chat_id, "--json", "run: touch go")

    def woken() -> Any:
        (found,) = monitors_of(stack, chat_id)
        return found if found["state"] == "woken" else None

    found = until(woken, "a chat that is woken", within_s=WAKE_S_MAX)
    assert (found["cause"], found["detail"]) == ("matched", "all ready 7")
    wakes = [text for text in said_in(stack, chat_id) if text.startswith("Woken by a monitor:")]
    assert len(wakes) == 1
    assert "all ready 7" in wakes[0]
    listed = stack.parley("monitor", "ls", chat_id).stdout
    assert "matched all ready 7" in listed
    again = monitored(stack, chat_id, process_id=process_id)
    assert "no monitor was made" in again["notes"][0]


def test_a_monitor_is_cancelled_by_its_owner(stack: LocalStack) -> None:
    chat_id, process_id = started(stack, "sleep 300")
    made = monitored(stack, chat_id, process_id=process_id)
    cancelled = stack.parley("monitor", "cancel", chat_id, made["monitor_id"])
    assert cancelled.stdout == "It is ended.\n"
    (over,) = monitors_of(stack, chat_id)
    assert (over["state"], over["reason"]) == ("ended", "Its owner cancelled it.")
    bad = monitored(stack, chat_id, process_id=process_id, pattern="(")
    assert bad["reason"] == "INVALID_PATTERN"
