"""An MCP server is added, used by chats, and lost and found, with `parley` alone."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.ports import free_port
from support.mcpgateway.servers import everything_process, until_listening
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

ECHO = 'call: everything__echo {"text": "the sea"}'


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Give a stack whose operator allows MCP servers on this machine."""
    stack = LocalStack.at(tmp_path / "home", MCPGATEWAY_ALLOWED_HOSTS="127.0.0.0/8")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


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
    recorded = json.loads(stack.parley("mcp", "calls", "--json").stdout)["items"]
    outcomes = [call["outcome"] for call in recorded if call["original_name"] == "echo"]
    assert outcomes == ["succeeded"] * 3
    assert stack.parley("mcp", "rm", "everything").returncode == 0
    assert "everything" not in stack.parley("mcp", "ls").stdout
