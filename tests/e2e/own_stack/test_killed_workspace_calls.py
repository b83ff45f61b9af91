"""Calls of servers inside workspaces, during which chatd or toolrunner is killed."""

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.chatd.workspace_servers import stdio_server
from support.host.conditions import until
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

PROGRAM = Path(stdio_server.__file__).read_text()
SEEN_S_MAX = 90.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("servers") / "home")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


def succeeded(stack: LocalStack, *arguments: str) -> str:
    ran = stack.parley(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def chat_with_server(stack: LocalStack, word: str) -> str:
    """Return a chat whose workspace has a trusted server with a word in its command line."""
    defined = {"mcpServers": {"plain": {"command": "python3", "args": ["server.py", word]}}}
    written = {"server.py": PROGRAM, ".mcp.json": json.dumps(defined)}
    steps = "\n".join(
        f"call: write_file {json.dumps({'path': path, 'content': content})}"
        for path, content in written.items()
    )
    events = map(json.loads, succeeded(stack, "run", "--json", steps).splitlines())
    chat_id: str = next(
        event["message"]["chat_id"] for event in events if event["type"] == "message"
    )
    succeeded(stack, "mcp", "workspace", "trust", chat_id, "plain", "--yes")
    succeeded(stack, "approvals", "add", "allow", "ws_plain__*", "--chat", chat_id)
    return chat_id


def pids_with(word: str) -> set[int]:
    """Return the processes with a word in their command line."""
    found = ((each.pid, each.info["cmdline"]) for each in psutil.process_iter(["cmdline"]))
    return {pid for pid, words in found if words and word in words}


def kill(stack: LocalStack, service: str) -> None:
    """Kill the processes of a service, and wait until others took their place."""
    for process in stack.status()["processes"]:
        if process["service"] == service:
            psutil.Process(process["pid"]).kill()
            stack.until_whole(without=process["pid"])


def slow_calls(stack: LocalStack, chat_id: str) -> str:
    """Return how often the tool without an answer was called in the workspace of a chat."""
    command = "call: execute " + json.dumps({"command": "echo counted:$(cat slow_calls):"})
    succeeded(stack, "send", chat_id, command)
    return succeeded(stack, "show", chat_id).rpartition("counted:")[2].partition(":")[0]


def unknown_calls(stack: LocalStack, chat_id: str) -> list[str]:
    """Return the tools of a chat that are listed as such that may have run."""
    found = call(stack, "GET", "/api/v1/unknown-outcomes")["items"]
    return [each["tool_name"] for each in found if each["chat_id"] == chat_id]


@pytest.mark.parametrize("service", ["chatd", "toolrunner"])
def test_a_call_is_unknown_after_a_kill_and_the_next_one_works(
    stack: LocalStack, service: str
) -> None:
    word = f"server-during-a-kill-of-{service}"
    chat_id = chat_with_server(stack, word)
    path = f"/api/v1/chats/{chat_id}"
    content = [{"type": "text", "text": "call: ws_plain__slow {}"}]
    call(stack, "POST", f"{path}/messages", {"content": content})
    files = stack.home.root
    until(lambda: any(files.rglob("slow_calls")), "a running call", within_s=SEEN_S_MAX)
    before = pids_with(word)
    assert before
    kill(stack, service)
    until(
        lambda: bool(call(stack, "GET", path)["status"] == "waiting"),
        "the end of the turn",
        within_s=SEEN_S_MAX,
    )
    said = json.dumps(call(stack, "GET", f"{path}/messages"))
    assert "UNKNOWN_OUTCOME" in said
    assert unknown_calls(stack, chat_id) == ["ws_plain__slow"]
    until(lambda: not before & pids_with(word), "no orphan", within_s=SEEN_S_MAX)
    answered = 'call: ws_plain__echo {"text": "after the kill"}'

    def is_answered() -> bool:
        succeeded(stack, "send", chat_id, answered)
        shown = succeeded(stack, "show", chat_id)
        return "after the kill" in shown.rpartition(answered)[2]

    until(is_answered, "an answer", within_s=SEEN_S_MAX)
    assert unknown_calls(stack, chat_id) == []
    assert slow_calls(stack, chat_id) == "x"
    for each in files.rglob("slow_calls"):
        each.unlink()
