"""The to-do list of a chat: kept by the model, shown by a command, reverted with its history."""

import json
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


def todos_of(stack: LocalStack, chat_id: str) -> list[dict[str, Any]]:
    told = stack.parley("todos", chat_id, "--json")
    assert told.returncode == 0, told.stderr
    items: list[dict[str, Any]] = json.loads(told.stdout)["items"]
    return items


def test_a_list_is_kept_shown_and_reverted(stack: LocalStack) -> None:
    items = json.dumps({"items": [{"text": "look"}, {"text": "leap"}]})
    ran = stack.parley("run", "--json", f"call: todo {items}")
    assert ran.returncode == 0, ran.stderr
    events = list(map(json.loads, ran.stdout.splitlines()))
    messages = [event["message"] for event in events if event["type"] == "message"]
    chat_id = messages[0]["chat_id"]
    begun = [
        {"id": 1, "text": "look", "status": "pending"},
        {"id": 2, "text": "leap", "status": "pending"},
    ]
    shown = [
        part["result"]["todos"]
        for message in messages
        for part in message["content"]
        if part["type"] == "tool-result"
    ]
    assert shown == [begun]
    assert todos_of(stack, chat_id) == begun
    update = json.dumps({"updates": [{"id": 1, "status": "in_progress"}]})
    sent = stack.parley("send", chat_id, "--json", f"call: todo {update}")
    assert sent.returncode == 0, sent.stderr
    assert todos_of(stack, chat_id)[0] == {"id": 1, "text": "look", "status": "in_progress"}
    assert stack.parley("todos", chat_id).stdout == (
        "id  status       to do\n1   in progress  look\n2   pending      leap\n"
    )
    fork = stack.parley("fork", chat_id, "--json")
    assert fork.returncode == 0, fork.stderr
    assert todos_of(stack, json.loads(fork.stdout)["id"]) == todos_of(stack, chat_id)
    asked = json.loads(stack.parley("show", chat_id, "--json").stdout)["messages"]
    second = [message["id"] for message in asked if message["role"] == "user"][-1]
    reverted = stack.parley("revert", chat_id, str(second))
    assert reverted.returncode == 0, reverted.stdout + reverted.stderr
    assert todos_of(stack, chat_id) == begun
