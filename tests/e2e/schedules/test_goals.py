"""Goals in a real stack: the scripted model works until a command passes in its workspace."""

import json
from typing import Any

import pytest

from support.host.conditions import until
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

GOAL_S_MAX = 120.0
WRITE = 'call: write_file {"path": "done.txt", "content": "done"}'


def chat_of(stack: LocalStack, text: str = "say: ready") -> str:
    """Return a new chat at rest."""
    ran = stack.parley("run", "--json", text)
    assert ran.returncode == 0, ran.stderr
    events = map(json.loads, ran.stdout.splitlines())
    found = (each["message"]["chat_id"] for each in events if each["type"] == "message")
    return str(next(found))


def test_a_chat_works_until_the_judge_agrees_or_the_budget_is_used_up(stack: LocalStack) -> None:
    chat_id = chat_of(stack, "repeat after me: ready")
    made = stack.parley(
        "goal", "set", chat_id, "repeat after me: no", "--judge", "scripted", "--turns", "2"
    )
    assert made.returncode == 0, made.stderr
    exhausted = over(stack, chat_id)
    assert (exhausted["state"], exhausted["verdict"]) == ("exhausted", "No call succeeded yet.")
    assert exhausted["reason"] == "The judge did not agree within 2 turns."
    assert "says the model that judges it" in stack.parley("show", chat_id).stdout
    again = stack.parley("goal", "set", chat_id, "run: echo yes", "--judge", "scripted")
    assert again.returncode == 0, again.stderr
    reached = over(stack, chat_id)
    assert (reached["state"], reached["turns_count"]) == ("reached", 1)
    assert "A call succeeded." in stack.parley("goal", "show", chat_id).stdout


def over(stack: LocalStack, chat_id: str) -> Any:
    """Wait until the goal of a chat is not active any more, and return it."""

    def found() -> Any:
        shown = stack.parley("goal", "show", chat_id, "--json")
        assert shown.returncode == 0, shown.stderr
        goal = json.loads(shown.stdout)
        return goal if goal["state"] != "active" else None

    return until(found, "the end of a goal", within_s=GOAL_S_MAX)


def test_a_chat_works_until_the_check_passes_or_the_budget_is_used_up(stack: LocalStack) -> None:
    chat_id = chat_of(stack)
    made = stack.parley("goal", "set", chat_id, WRITE, "--check", "cat done.txt")
    assert made.returncode == 0, made.stderr
    reached = over(stack, chat_id)
    assert (reached["state"], reached["reason"]) == ("reached", None)
    assert (reached["turns_count"], reached["check_output"]) == (1, "done")

    again = stack.parley(
        "goal", "set", chat_id, "say: no", "--check", "echo broken; exit 3", "--turns", "2"
    )
    assert again.returncode == 0, again.stderr
    exhausted = over(stack, chat_id)
    assert (exhausted["state"], exhausted["turns_count"]) == ("exhausted", 2)
    assert exhausted["reason"] == "The check did not pass within 2 turns."
    said = stack.parley("show", chat_id).stdout
    assert "ended with exit code 3" in said
    assert "exhausted" in stack.parley("goal", "pause", chat_id).stdout
    assert stack.parley("goal", "end", chat_id).stdout == "The goal is ended.\n"
    assert stack.parley("goal", "show", chat_id).returncode != 0
