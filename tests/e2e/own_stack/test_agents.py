"""Agents of the demo model: started by a chat, working beside it, waited for and limited."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[LocalStack]:
    """A stack of one process with four slots."""
    stack = LocalStack.at(
        tmp_path / "home", CHATD_RUNNING_CHATS_MAX="4", CHATD_AGENTS_PER_ROOT_MAX="50"
    )
    started = stack.up("--chatd", "1")
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    stack.parley("down")


def spawn(prompt: str, **more: str) -> str:
    """Return the line that lets the demo model start an agent."""
    return f"call: spawn_agent {json.dumps({'prompt': prompt, **more})}"


def results_of(stack: LocalStack, text: str) -> list[dict[str, Any]]:
    """Run a turn in a new chat, and return the results of its calls."""
    ran = stack.parley("run", "--json", text)
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
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


def test_a_chat_starts_two_agents_waits_for_them_and_reads_their_reports(
    stack: LocalStack,
) -> None:
    first, second, waited = results_of(
        stack,
        f"{spawn('repeat after me: one', name='First')}\n"
        f"and {spawn('repeat after me: two', type='explore')}\n"
        "call: wait_agents {}",
    )
    assert (first["name"], first["type"], first["status"]) == ("First", "general", "running")
    assert (second["name"], second["type"]) == ("repeat after me: two", "explore")
    versions = [agent.pop("version") for agent in waited["agents"]]
    assert all(versions)
    assert waited == {
        "ok": True,
        "timed_out": False,
        "agents": [
            {**_done(first), "report": "one"},
            {**_done(second), "report": "two"},
        ],
    }


def test_time_that_runs_out_is_information_and_an_interrupt_of_the_root_stops_its_agents(
    stack: LocalStack,
) -> None:
    started, late, listed = results_of(
        stack,
        f'{spawn("count to 1000")}\ncall: wait_agents {{"timeout_s": 1}}\ncall: list_agents {{}}',
    )
    assert (late["ok"], late["timed_out"]) == (True, True)
    assert late["agents"][0]["status"] == listed["agents"][0]["status"] == "running"
    agent_id = started["agent_id"]
    running = chat_of(stack, agent_id)
    assert running["status"] == "running"
    stopped = stack.parley("interrupt", running["parent_chat_id"])
    assert stopped.returncode == 0, stopped.stderr
    assert chat_of(stack, agent_id)["status"] in ("interrupting", "waiting")


def test_agents_start_no_agents_and_those_of_other_chats_are_out_of_reach(
    stack: LocalStack,
) -> None:
    inner = "call: list_agents {}"
    started, waited = results_of(stack, f"{spawn(inner)}\ncall: wait_agents {{}}")
    assert "list_agents" in waited["agents"][0]["report"]
    arguments = json.dumps({"agent_id": started["agent_id"], "message": "hello"})
    own, refused = results_of(
        stack, f"{spawn('repeat after me: x')}\ncall: message_agent {arguments}"
    )
    assert own["ok"] is True
    assert (refused["ok"], refused["reason"]) == (False, "INVALID_ARGUMENTS")
    assert "no agent of this chat" in refused["error"]


def test_fifty_agents_finish_in_a_process_of_four_slots_and_the_next_is_refused(
    narrow: LocalStack,
) -> None:
    spawns = "\nand ".join(spawn(f"repeat after me: {number}") for number in range(25))
    again = "\nand ".join(spawn(f"repeat after me: {number}") for number in range(25, 50))
    results = results_of(
        narrow, f"{spawns}\n{again}\n{spawn('one too many')}\ncall: wait_agents {{}}"
    )
    *_, refused, waited = results
    assert refused["reason"] == "AGENTS_TOO_MANY"
    assert waited["timed_out"] is False
    assert [agent["report"] for agent in waited["agents"]] == [str(n) for n in range(50)]


def _done(started: dict[str, Any]) -> dict[str, Any]:
    return {
        "agent_id": started["agent_id"],
        "name": started["name"],
        "type": started["type"],
        "status": "done",
        "cost_micros": 0,
    }
