"""An MCP server inside a workspace: listed, trusted, called, and trusted no longer."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.chatd.workspace_servers import stdio_server
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

PROGRAM = Path(stdio_server.__file__).read_text()
DEFINED = {
    "mcpServers": {
        "plain": {"command": "python3", "args": ["server.py"], "env": {"GREETING": "hello"}}
    }
}


def write(path: str, content: str) -> str:
    return f"call: write_file {json.dumps({'path': path, 'content': content})}"


def succeeded(stack: LocalStack, *arguments: str) -> str:
    ran = stack.parley(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def servers_of(stack: LocalStack, chat_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        succeeded(stack, "mcp", "workspace", "ls", chat_id, "--json")
    )["servers"]
    return found


def results_of(stack: LocalStack, chat_id: str) -> str:
    return succeeded(stack, "show", chat_id)


def chat_with(stack: LocalStack, defined: object) -> str:
    """Return a chat whose workspace defines servers."""
    steps = "\n".join((write("server.py", PROGRAM), write(".mcp.json", json.dumps(defined))))
    ran = succeeded(stack, "run", "--json", steps)
    chat_id: str = next(
        event["message"]["chat_id"]
        for event in map(json.loads, ran.splitlines())
        if event["type"] == "message"
    )
    return chat_id


def test_many_tools_of_a_server_are_found_before_they_are_called(stack: LocalStack) -> None:
    chat_id = chat_with(
        stack, {"mcpServers": {"plain": {"command": "python3", "args": ["server.py", "many"]}}}
    )
    succeeded(stack, "mcp", "workspace", "trust", chat_id, "plain", "--yes")
    succeeded(stack, "approvals", "add", "allow", "ws_plain__*", "--chat", chat_id)
    succeeded(stack, "send", chat_id, 'call: find_tools {"names": ["ws_plain__case_7"]}')
    assert "One case." in results_of(stack, chat_id)
    call = 'call: ws_plain__case_7 {"text": "found and called"}'
    succeeded(stack, "send", chat_id, call)
    assert "found and called" in results_of(stack, chat_id).rpartition(call)[2]


def test_a_server_of_a_workspace_is_trusted_called_and_stopped(stack: LocalStack) -> None:
    chat_id = chat_with(stack, DEFINED)
    (listed,) = servers_of(stack, chat_id)
    assert (listed["name"], listed["state"], listed["command"], listed["arguments"]) == (
        "plain",
        "untrusted",
        "python3",
        ["server.py"],
    )
    assert listed["environment"] == {"GREETING": "hello"}
    assert succeeded(stack, "mcp", "workspace", "trust", chat_id, "plain", "--yes") == "trusted\n"
    succeeded(stack, "approvals", "add", "allow", "ws_plain__*", "--chat", chat_id)
    call = 'call: ws_plain__echo {"text": "from inside"}'
    succeeded(stack, "send", chat_id, call)
    # The server adds the greeting of its environment.
    assert "from inside hello" in results_of(stack, chat_id)
    (running,) = servers_of(stack, chat_id)
    assert running["state"] == "running"
    assert "echo" in running["tool_names"]
    succeeded(stack, "mcp", "workspace", "untrust", chat_id, "plain")
    (stopped,) = servers_of(stack, chat_id)
    assert stopped["state"] == "untrusted"
    succeeded(stack, "send", chat_id, 'call: ws_plain__echo {"text": "not any more"}')
    assert "ws_plain__echo" in results_of(stack, chat_id)
    assert stack.parley("mcp", "workspace", "trust", chat_id, "other", "--yes").returncode == 1


def test_resources_and_prompts_of_a_trusted_server_can_be_referred_to(stack: LocalStack) -> None:
    chat_id = chat_with(stack, DEFINED)
    place = ("mcp", "workspace")
    untrusted = stack.parley(*place, "prompts", chat_id, "plain")
    succeeded(stack, *place, "trust", chat_id, "plain", "--yes")
    prompts = succeeded(stack, *place, "prompts", chat_id, "plain")
    greeting = succeeded(stack, *place, "prompts", chat_id, "plain", "greet", "who=Ann Lee")
    resources = succeeded(stack, *place, "resources", chat_id, "plain")
    note = succeeded(stack, *place, "resources", chat_id, "plain", "memo://note")
    unknown = stack.parley(*place, "resources", chat_id, "plain", "memo://other")
    assert (untrusted.returncode, "not trusted" in untrusted.stderr) == (1, True)
    assert [line.split() for line in prompts.splitlines()[1:]] == [["greet", "who", "Greets."]]
    assert greeting == "Greet Ann Lee.\n"
    assert [line.split()[:3] for line in resources.splitlines()[1:]] == [
        ["memo://note", "note", "text/plain"]
    ]
    assert note == "remember the milk\n"
    assert (unknown.returncode, "there is no such thing" in unknown.stderr) == (1, True)
