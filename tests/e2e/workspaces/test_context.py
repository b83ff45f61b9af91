"""The context of a chat: instruction files of its workspace, pinned, compared and refreshed."""

import json
import time
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


def context_of(stack: LocalStack, chat_id: str, *options: str) -> dict[str, Any]:
    told = stack.parley("context", chat_id, "--json", *options)
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_instruction_files_are_pinned_told_apart_and_refreshed(stack: LocalStack) -> None:
    ran = stack.parley("run", "--json", "run: echo be kind >AGENTS.md")
    assert ran.returncode == 0, ran.stderr
    chat_id: str = next(
        event["message"]["chat_id"]
        for event in map(json.loads, ran.stdout.splitlines())
        if event["type"] == "message"
    )
    pinned = context_of(stack, chat_id)
    assert pinned["instruction_files"] == [
        {"path": "AGENTS.md", "size_bytes": 7, "tokens": 2, "truncated": False}
    ]
    assert (pinned["instructions_version"], pinned["instructions_drifted"]) == (1, False)
    tokens = {part["kind"]: part["tokens"] for part in pinned["parts"]}
    assert list(tokens) == [
        "system_prompt",
        "instructions",
        "skills",
        "tools",
        "summary",
        "history",
    ]
    assert all(tokens[kind] > 0 for kind in ("system_prompt", "instructions", "tools", "history"))
    sent = stack.parley("send", chat_id, "run: echo be brief and exact >AGENTS.md")
    assert sent.returncode == 0, sent.stderr
    assert context_of(stack, chat_id) == pinned | {
        "instructions_drifted": True,
        "parts": context_of(stack, chat_id)["parts"],
    }
    assert "have changed since" in stack.parley("context", chat_id).stdout
    renewed = context_of(stack, chat_id, "--refresh")
    assert renewed["instruction_files"][0]["size_bytes"] == 18
    assert (renewed["instructions_version"], renewed["instructions_drifted"]) == (2, False)


def test_the_instruction_file_of_the_home_is_pinned_also_in_forks(stack: LocalStack) -> None:
    writing = "run: echo be brief >~/AGENTS.md; echo be kind >AGENTS.md"
    ran = stack.parley("run", "--json", "--no-directory", writing)
    assert ran.returncode == 0, ran.stderr
    events = list(map(json.loads, ran.stdout.splitlines()))
    chat_id = next(each["message"]["chat_id"] for each in events if each["type"] == "message")
    prompt = {"prompt": "run: true", "isolation": "fork"}
    spawning = f"call: spawn_agent {json.dumps(prompt)}\ncall: wait_agents {{}}"
    sent = stack.parley("send", chat_id, "--json", spawning)
    assert sent.returncode == 0, sent.stderr
    agents = json.loads(stack.parley("agents", chat_id, "--json").stdout)["items"]
    (agent_id,) = [each["id"] for each in agents]
    for each in (chat_id, agent_id):
        files = context_of(stack, each)["instruction_files"]
        assert [file["path"] for file in files] == ["~/AGENTS.md", "AGENTS.md"]


def test_drift_is_seen_after_a_tool_changed_a_file(stack: LocalStack) -> None:
    ran = stack.parley("run", "--json", "run: echo be kind >AGENTS.md")
    assert ran.returncode == 0, ran.stderr
    events = list(map(json.loads, ran.stdout.splitlines()))
    chat_id = next(each["message"]["chat_id"] for each in events if each["type"] == "message")
    assert context_of(stack, chat_id)["instructions_version"] == 1
    sent = stack.parley("send", chat_id, "run: echo be brief >AGENTS.md")
    assert sent.returncode == 0, sent.stderr
    await_drift(stack, chat_id, drifted=True)
    context_of(stack, chat_id, "--refresh")
    await_drift(stack, chat_id, drifted=False)


def await_drift(stack: LocalStack, chat_id: str, *, drifted: bool) -> None:
    """Wait until the chat says whether its instruction files differ."""
    deadline_s = time.monotonic() + 30
    while (
        json.loads(stack.parley("show", chat_id, "--json").stdout)["chat"]["instructions_drifted"]
        is not drifted
    ):
        assert time.monotonic() < deadline_s


def test_the_instructions_of_a_subdirectory_come_with_its_files(stack: LocalStack) -> None:
    steps = (
        "run: mkdir -p lib/deep; echo use tabs >lib/AGENTS.md; echo text >lib/deep/a",
        'call: read_file {"path": "lib/deep/a"}',
        'call: list_files {"path": "lib"}',
    )
    ran = stack.parley("run", "--json", "--no-directory", "\n".join(steps))
    assert ran.returncode == 0, ran.stderr
    _, read, listed = [
        part["result"]
        for event in map(json.loads, ran.stdout.splitlines())
        if event["type"] == "message"
        for part in event["message"]["content"]
        if part["type"] == "tool-result"
    ]
    assert read["directory_instructions"] == [
        {"instructions_from": "lib/AGENTS.md", "content": "use tabs"}
    ]
    assert "not by the user" in read["notes"][-1]
    assert "directory_instructions" not in listed
