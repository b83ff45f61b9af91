"""Agents of the demo model that work in forks: their changes are shown, applied and refused."""

import json
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

WRITE = "run: printf 'child\\n' > shared; echo new > added; rm -f gone"


def spawn(prompt: str, **more: str) -> str:
    """Return the line that lets the demo model start an agent in a fork."""
    return f"call: spawn_agent {json.dumps({'prompt': prompt, 'isolation': 'fork', **more})}"


def events_of(stack: LocalStack, *arguments: str) -> list[dict[str, Any]]:
    ran = stack.parley(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def results_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of the calls in a turn."""
    return [
        part["result"]
        for event in events
        if event["type"] == "message"
        for part in event["message"]["content"]
        if part["type"] == "tool-result"
    ]


def chat_of(stack: LocalStack, chat_id: str) -> dict[str, Any]:
    """Return a chat as the command shows it."""
    shown = stack.parley("show", "--json", chat_id)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    chat: dict[str, Any] = told.get("chat", told)
    return chat


def begin(stack: LocalStack, *steps: str) -> tuple[str, list[dict[str, Any]]]:
    """Run a turn in a new chat that works on no directory; return the chat and its results."""
    events = events_of(stack, "run", "--json", "--no-directory", "\n".join(steps))
    results = results_of(events)
    agent_id = next(each["agent_id"] for each in results if "agent_id" in each)
    return str(chat_of(stack, agent_id)["parent_chat_id"]), results


def go_on(stack: LocalStack, chat_id: str, *steps: str) -> list[dict[str, Any]]:
    """Run another turn, and return its results."""
    return results_of(events_of(stack, "send", "--json", chat_id, "\n".join(steps)))


def apply_step(agent_id: str, **more: object) -> str:
    return f"call: apply_child_changes {json.dumps({'agent_id': agent_id, **more})}"


def test_changes_of_an_agent_in_a_fork_are_shown_and_applied_only_when_that_is_asked(
    stack: LocalStack,
) -> None:
    chat_id, results = begin(
        stack,
        "run: echo parent > shared; echo here > gone",
        spawn(WRITE),
        "call: wait_agents {}",
        "run: cat shared gone",
    )
    started, waited, before = results[1:]
    assert (started["isolation"], started["status"]) == ("fork", "running")
    assert waited["agents"][0]["isolation"] == "fork"
    assert before["output"].split() == ["parent", "here"]
    agent_id = started["agent_id"]
    shown = stack.parley("agents", "diff", agent_id)
    assert shown.returncode == 0, shown.stderr
    assert "-parent\n+child\n" in shown.stdout
    dry, applied, again, after = go_on(
        stack,
        chat_id,
        apply_step(agent_id, dry_run=True),
        apply_step(agent_id),
        apply_step(agent_id),
        "run: cat shared added; ls",
    )
    assert (dry["applied"], dry["merged_paths"]) == (False, ["added", "gone", "shared"])
    assert (applied["applied"], applied["merged_paths"]) == (True, ["added", "gone", "shared"])
    assert (again["applied"], again["merged_paths"]) == (False, [])
    assert after["output"].split() == ["child", "new", "added", "shared"]
    merged = stack.parley("agents", "diff", agent_id)
    assert merged.returncode == 0, merged.stderr
    (line,) = [line for line in merged.stdout.splitlines() if line.startswith("applied at ")]
    assert line.endswith(", 3 files")
    assert "-parent\n+child\n" in merged.stdout


def test_with_a_conflict_nothing_is_applied_unless_a_version_is_chosen(stack: LocalStack) -> None:
    chat_id, results = begin(
        stack,
        "run: echo parent > shared",
        spawn(WRITE),
        "call: wait_agents {}",
        "run: echo mine > shared",
    )
    agent_id = results[1]["agent_id"]
    (reported,) = go_on(stack, chat_id, apply_step(agent_id))
    assert (reported["applied"], reported["merged_paths"]) == (False, [])
    (conflict,) = reported["conflicts"]
    assert (conflict["path"], conflict["kind"]) == ("shared", "content")
    refused = stack.parley("agents", "apply", agent_id)
    assert refused.returncode == 1
    assert "shared" in refused.stdout + refused.stderr
    taken = stack.parley("agents", "apply", "--take-fork", agent_id)
    assert taken.returncode == 0, taken.stderr
    (after,) = go_on(stack, chat_id, "run: cat shared added")
    assert after["output"].split() == ["child", "new"]


def test_agents_that_explore_write_nothing_and_get_no_fork(stack: LocalStack) -> None:
    _, results = begin(
        stack,
        "run: echo parent > shared",
        spawn("run: echo child > shared", type="explore"),
        "call: wait_agents {}",
        "run: cat shared",
    )
    started, waited, after = results[1:]
    assert "isolation" not in started
    assert waited["agents"][0]["status"] == "done"
    assert after["output"].split() == ["parent"]
