"""An MCP server is added, used by chats, and lost and found, with `parley` alone."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.host.conditions import until
from support.host.ports import free_port
from support.mcpgateway.servers import everything_process, until_listening
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

SEEN_S_MAX = 90.0
ECHO = 'call: everything__echo {"text": "the sea"}'


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Give a stack whose operator allows MCP servers on this machine."""
    stack = LocalStack.at(tmp_path / "home", MCPGATEWAY_ALLOWED_HOSTS="127.0.0.0/8")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


def asked_and_answered(stack: LocalStack, decision: str) -> str:
    """Let a chat call the tool, answer the approval that it waits for; return what is stored."""
    content = [{"type": "text", "text": ECHO}]
    chat_id = call(stack, "POST", "/api/v1/chats", {"content": content})["id"]
    path = f"/api/v1/chats/{chat_id}"

    def actions() -> list[dict[str, Any]]:
        items = call(stack, "GET", "/api/v1/actions")["items"]
        return [each for each in items if each["chat_id"] == chat_id]

    (action,) = until(actions, "an approval", within_s=SEEN_S_MAX)
    assert (action["kind"], action["tool_name"]) == ("approval", "everything__echo")
    call(stack, "POST", f"{path}/actions/{action['id']}/answer", {"decision": decision})
    until(
        lambda: bool(call(stack, "GET", path)["status"] == "waiting"),
        "the end of the turn",
        within_s=SEEN_S_MAX,
    )
    return json.dumps(call(stack, "GET", f"{path}/messages"))


def outcomes(stack: LocalStack) -> list[str]:
    """Return how the recorded calls of the tool ended."""
    recorded = json.loads(stack.parley("mcp", "calls", "--json").stdout)["items"]
    return [each["outcome"] for each in recorded if each["original_name"] == "echo"]


def test_a_server_is_added_used_lost_and_found_again(stack: LocalStack) -> None:
    port = free_port()
    with everything_process(port):
        asyncio.run(until_listening(port))
        url = f"http://127.0.0.1:{port}/mcp"
        added = stack.parley(
            "mcp", "add", "everything", "--url", url, "--enable", "--default-on",
            "--approval", "never",
        )  # fmt: skip
        assert added.returncode == 0, added.stderr
        probed = stack.parley("mcp", "probe", "everything")
        assert (probed.returncode, probed.stdout.splitlines()[-1]) == (
            0,
            "everything speaks 2026-07-28 and offers 5 tools.",
        )
        shown = json.loads(stack.parley("mcp", "show", "everything").stdout)
        assert (shown["url"], shown["health"]["state"], shown["health"]["tool_count"]) == (
            url,
            "ready",
            5,
        )
        listed = stack.parley("mcp", "tools", "everything").stdout.splitlines()
        assert [line.split()[0] for line in listed[1:]] == [
            "echo",
            "grow",
            "long_text",
            "picture",
            "whoami",
        ]
        called = stack.parley("mcp", "call", "everything", "echo", '{"text": "hi"}')
        assert (called.returncode, called.stdout) == (0, "hi\n")
        ran = stack.parley("run", ECHO)
        assert ran.returncode == 0, ran.stderr
        assert "the sea" in ran.stdout + ran.stderr
    lost = stack.parley("run", "--json", "hello")
    assert lost.returncode == 0, lost.stderr
    with everything_process(port):
        asyncio.run(until_listening(port))
        again = stack.parley("run", ECHO)
        assert "the sea" in again.stdout + again.stderr
        assert outcomes(stack) == ["succeeded"] * 3
        # Its policy asks a person before each call.
        assert stack.parley("mcp", "set", "everything", "--approval", "always").returncode == 0
        assert '"outcome": "done"' not in asked_and_answered(stack, "refuse")
        assert outcomes(stack) == ["succeeded"] * 3
        assert '"outcome": "done"' in asked_and_answered(stack, "accept")
        assert outcomes(stack) == ["succeeded"] * 4
    assert stack.parley("mcp", "rm", "everything").returncode == 0
    assert "everything" not in stack.parley("mcp", "ls").stdout
