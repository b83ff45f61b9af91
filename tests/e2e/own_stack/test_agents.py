"""Agents of the demo model: started by a chat, working beside it, waited for and limited."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
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


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[LocalStack]:
    """A stack with one slot, whose agents may work for ten seconds after a message."""
    stack = LocalStack.at(
        tmp_path / "home", CHATD_RUNNING_CHATS_MAX="1", CHATD_AGENTS_DURATION_S_MAX="10"
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
    return results_in(stack.parley("run", "--json", text))


def results_in(ran: CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the results of the calls of a turn that a command ran."""
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


def test_a_chat_reads_the_processes_of_its_agent_and_what_they_printed(stack: LocalStack) -> None:
    started, _, listed, own = results_of(
        stack,
        f"{spawn('run: echo from the agent; echo again', name='Builder')}\n"
        'call: wait_agents {}\ncall: agent_processes {"agent_id": "$agent_1"}\n'
        "call: process_list {}",
    )
    (process,) = listed["processes"]
    assert (process["exit_code"], process["running"]) == (0, False)
    assert own["total"] == 0
    chat_id = chat_of(stack, started["agent_id"])["parent_chat_id"]
    arguments = json.dumps({"agent_id": started["agent_id"], "process_id": process["process_id"]})
    sent = stack.parley("send", "--json", chat_id, f"call: agent_processes {arguments}")
    (shown,) = results_in(sent)
    assert (shown["output"], shown["agent_id"]) == ("from the agent\nagain\n", started["agent_id"])


def test_the_first_agent_that_ends_is_enough_and_the_other_is_interrupted(
    stack: LocalStack,
) -> None:
    _, quick, first, stopped, waited = results_of(
        stack,
        f"{spawn('count to 100000', name='Slow')}\nand {spawn('repeat after me: one')}\n"
        'call: wait_agents {"until": "any"}\n'
        'call: interrupt_agent {"agent_id": "$agent_1"}\n'
        "call: wait_agents {}",
    )
    assert first["timed_out"] is False
    assert [each["status"] for each in first["agents"]] == ["running", "done"]
    assert first["agents"][1]["agent_id"] == quick["agent_id"]
    assert stopped["interrupted"] is True
    slow, _ = waited["agents"]
    assert (slow["name"], slow["status"], slow["cut"]) == ("Slow", "done", "interrupted")


def test_an_agent_that_has_ended_goes_on_with_a_message_and_one_that_works_is_turned_by_one(
    stack: LocalStack,
) -> None:
    _, again, _, _, turned = results_of(
        stack,
        f"{spawn('repeat after me: one')}\ncall: wait_agents {{}}\n"
        'call: message_agent {"agent_id": "$agent_1", "message": "repeat after me: two"}\n'
        "call: wait_agents {}\n"
        'call: message_agent {"agent_id": "$agent_1", "message": "count to 100000"}\n'
        'call: message_agent {"agent_id": "$agent_1", "message": "repeat after me: three", '
        '"interrupt": true}\ncall: wait_agents {}',
    )[-5:]
    assert (again["agents"][0]["status"], again["agents"][0]["report"]) == ("done", "two")
    assert (turned["agents"][0]["status"], turned["agents"][0]["report"]) == ("done", "three")


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


def test_a_report_has_the_schema_of_its_parent_or_is_told_as_invalid(stack: LocalStack) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }
    good = {"prompt": 'repeat after me: {"count": 3}', "report_schema": schema}
    bad = {"prompt": "repeat after me: three", "report_schema": schema}
    spawns = (f"call: spawn_agent {json.dumps(each)}" for each in (good, bad))
    *started, waited = results_of(stack, "\nand ".join(spawns) + "\ncall: wait_agents {}")
    valid, invalid = waited["agents"]
    assert (valid["report"], "report_problems" in valid) == ({"count": 3}, False)
    assert isinstance(invalid["report"], str)
    (problem,) = invalid["report_problems"]
    assert problem.startswith("it is not JSON")
    shown = json.loads(stack.parley("show", "--json", started[1]["agent_id"]).stdout)
    first = next(each for each in shown["messages"] if each["role"] == "assistant")
    # It was sent back, and the demo model gave another answer.
    assert (first["content"][0]["text"], invalid["report"] != "three") == ("three", True)


def test_an_agent_of_a_type_of_the_workspace_has_only_its_tools(stack: LocalStack) -> None:
    content = "---\ndescription: Reads.\ntools: read_file\n---\nRead it.\n"
    file = {"path": ".parley/agents/reader.md", "content": content}
    wrong = {"path": ".parley/agents/broken.md", "content": content.replace("read_file", "Read")}
    writes = [f"call: write_file {json.dumps(each)}" for each in (file, wrong)]
    ran = stack.parley("run", "--json", "--no-directory", "\n".join(writes))
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    chat_id = next(each["message"]["chat_id"] for each in events if each["type"] == "message")
    assert stack.parley("context", chat_id, "--refresh").returncode == 0
    listed = json.loads(stack.parley("agents", "types", chat_id, "--json").stdout)["items"]
    assert [(each["name"], each["tool_names"]) for each in listed] == [
        ("broken", ["Read"]),
        ("reader", ["read_file"]),
    ]
    steps = (
        spawn("run: echo hello", type="reader"),
        spawn("Read.", type="broken"),
        "call: wait_agents {}",
    )
    sent = stack.parley("send", chat_id, "--json", "\n".join(steps))
    assert sent.returncode == 0, sent.stderr
    started, refused, waited = [
        part["result"]
        for event in map(json.loads, sent.stdout.splitlines())
        if event["type"] == "message"
        for part in event["message"]["content"]
        if part["type"] == "tool-result"
    ][-3:]
    assert (started["type"], refused["reason"]) == ("reader", "INVALID_ARGUMENTS")
    assert ".parley/agents/broken.md names unknown tools: Read" in refused["error"]
    (agent,) = waited["agents"]
    assert agent["type"] == "reader"
    child = json.loads(stack.parley("show", "--json", agent["agent_id"]).stdout)
    assert '"output": "hello' not in json.dumps(child["messages"])


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


def test_an_agent_stops_when_the_time_of_its_tree_is_over_and_the_root_goes_on(
    hasty: LocalStack,
) -> None:
    # A chat that held the only slot while it waits would wait for its agent in vain.
    _, waited, refused = results_of(
        hasty,
        f"{spawn('run: sleep 11' + chr(10) + 'run: echo too late')}\ncall: wait_agents {{}}\n"
        f"{spawn('repeat after me: no')}",
    )
    (agent,) = waited["agents"]
    assert (agent["status"], agent["error"]["kind"]) == ("failed", "usage_limit")
    assert agent["error"]["detail"] == "AGENTS_TOO_LATE"
    assert (refused["ok"], refused["reason"]) == (False, "AGENTS_TOO_LATE")


def _done(started: dict[str, Any]) -> dict[str, Any]:
    return {
        "agent_id": started["agent_id"],
        "name": started["name"],
        "type": started["type"],
        "status": "done",
        "model": started["model"],
        "cost_micros": 0,
    }
