"""Calls of MCP tools, of which chatd and mcpgateway are killed without a warning."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from support.host.conditions import until
from support.host.ports import free_port
from support.mcpgateway.servers import (
    eliciting_process,
    kind_process,
    session_process,
    until_listening,
)
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

SEEN_S_MAX = 90.0
#: A restart, and no lease: those of mcpgateway take 15 s, and chatd gives up after 60 s.
KNOWN_S_MAX = 45.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Give a stack whose operator allows MCP servers on this machine."""
    home = tmp_path_factory.mktemp("killed") / "home"
    stack = LocalStack.at(home, MCPGATEWAY_ALLOWED_HOSTS="127.0.0.0/8")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


def kill(stack: LocalStack, service: str) -> None:
    """Kill the processes of a service, and wait until others took their place."""
    for process in stack.status()["processes"]:
        if process["service"] == service:
            psutil.Process(process["pid"]).kill()
            stack.until_whole(without=process["pid"])


def add(stack: LocalStack, slug: str, port: int) -> str:
    """Add a server that chats choose, and return its id."""
    body = {"slug": slug, "url": f"http://127.0.0.1:{port}/mcp", "is_enabled": True}
    made = call(stack, "POST", "/api/v1/mcp/servers", body | {"approval_policy": "never"})
    return str(made["id"])


def create(stack: LocalStack, text: str, server_id: str) -> str:
    """Start a chat that uses one server, and return its path."""
    content = [{"type": "text", "text": text}]
    body = {"content": content, "mcp_server_ids": [server_id]}
    return f"/api/v1/chats/{call(stack, 'POST', '/api/v1/chats', body)['id']}"


def question_of(stack: LocalStack, path: str) -> dict[str, Any]:
    """Wait until a chat asks, and return what."""

    def look() -> dict[str, Any]:
        actions = call(stack, "GET", "/api/v1/actions?limit=200")["items"]
        found = [each for each in actions if path.endswith(each["chat_id"])]
        return found[0] if found else {}

    return until(look, "a question of a call", within_s=SEEN_S_MAX)


def rested(stack: LocalStack, path: str, within_s: float = SEEN_S_MAX) -> str:
    """Wait until a chat is at rest, and return all that its messages say."""

    def look() -> bool:
        return bool(call(stack, "GET", path)["status"] == "waiting")

    until(look, "the end of a turn", within_s=within_s)
    return json.dumps(call(stack, "GET", f"{path}/messages"))


def answer(stack: LocalStack, path: str, action: dict[str, Any]) -> None:
    """Accept what a call asks."""
    body = {"decision": "accept", "content": {"colour": "red"}}
    call(stack, "POST", f"{path}/actions/{action['id']}/answer", body)


def counted(stack: LocalStack, slug: str, arguments: dict[str, str]) -> str:
    """Return what the tool `count` of a server says."""
    return stack.parley("mcp", "call", slug, "count", json.dumps(arguments)).stdout.strip()


def until_waiting(stack: LocalStack, slug: str) -> None:
    """Wait until the tool `wait` of a server runs."""

    def look() -> bool:
        return counted(stack, slug, {"what": "wait"}) == "1"

    until(look, "a running call", within_s=SEEN_S_MAX)


@contextmanager
def asking(stack: LocalStack, slug: str, kind: str) -> Iterator[str]:
    """Run a server whose tools ask, and add it; gives its id."""
    port = free_port()
    with eliciting_process(port, kind):
        asyncio.run(until_listening(port))
        yield add(stack, slug, port)


def test_a_call_that_asks_survives_a_killed_chatd_and_runs_once(stack: LocalStack) -> None:
    with asking(stack, "asking", "modern") as server_id:
        path = create(stack, "call: asking__paint {}", server_id)
        action = question_of(stack, path)
        kill(stack, "chatd")
        again = question_of(stack, path)
        answer(stack, path, again)
        said = rested(stack, path)

        assert (again["id"], again["kind"]) == (action["id"], "elicitation")
        assert "accept red house" in said
        assert counted(stack, "asking", {"name": "paint"}) == "1"


def test_a_call_that_asks_is_unknown_after_a_killed_mcpgateway_and_not_repeated(
    stack: LocalStack,
) -> None:
    with asking(stack, "lost", "mcp") as server_id:
        path = create(stack, "call: lost__paint {}", server_id)
        action = question_of(stack, path)
        kill(stack, "mcpgateway")
        answer(stack, path, action)
        said = rested(stack, path, KNOWN_S_MAX)

        assert "unknown" in said
        assert counted(stack, "lost", {"name": "paint"}) == "1"
    outcomes = [
        each["outcome"]
        for each in json.loads(stack.parley("mcp", "calls", "--json").stdout)["items"]
        if each["slug"] == "lost" and each["original_name"] == "paint"
    ]
    assert outcomes == ["unknown"]


def test_a_running_call_is_unknown_soon_after_its_mcpgateway_was_killed(
    stack: LocalStack,
) -> None:
    port = free_port()
    with session_process(port, "mcp"):
        asyncio.run(until_listening(port))
        path = create(stack, "call: busy__wait {}", add(stack, "busy", port))
        until(
            lambda: counted(stack, "busy", {"what": "wait"}) == "1", "a call", within_s=SEEN_S_MAX
        )
        kill(stack, "mcpgateway")
        said = rested(stack, path, KNOWN_S_MAX)

    assert "unknown" in said


def test_the_running_calls_of_a_deleted_chat_are_cancelled_at_the_server(
    stack: LocalStack,
) -> None:
    port = free_port()
    with session_process(port, "mcp"):
        asyncio.run(until_listening(port))
        path = create(stack, "call: left__wait {}", add(stack, "left", port))
        until(
            lambda: counted(stack, "left", {"what": "wait"}) == "1", "a call", within_s=SEEN_S_MAX
        )
        call(stack, "DELETE", path)

        def is_cancelled() -> bool:
            return counted(stack, "left", {"what": "cancelled"}) == "1"

        until(is_cancelled, "the cancellation of a call", within_s=SEEN_S_MAX)


def test_an_interrupted_call_is_cancelled_at_the_server_and_another_of_its_session_ends(
    stack: LocalStack,
) -> None:
    port = free_port()
    with kind_process(port, "mcp"):
        asyncio.run(until_listening(port))
        server_id = add(stack, "stopped", port)
        paths = [create(stack, "call: stopped__hold {}", server_id) for _ in range(2)]

        def count(what: str) -> str:
            return counted(stack, "stopped", {"what": what})

        until(lambda: count("hold") == "2", "two calls", within_s=SEEN_S_MAX)
        call(stack, "POST", f"{paths[0]}/interrupt")
        until(lambda: count("cancelled") == "1", "a cancellation", within_s=SEEN_S_MAX)
        assert call(stack, "GET", paths[1])["status"] == "running"
        assert stack.parley("mcp", "call", "stopped", "release", "{}").stdout == "done\n"
        said = rested(stack, paths[1])

        assert "released" in said
        assert (count("hold"), count("cancelled"), count("sessions")) == ("2", "1", "1")
        assert "released" not in rested(stack, paths[0])
