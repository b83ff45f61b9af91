"""A program of the workspace that fetches by itself makes the next command ask, in a real stack."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.host.conditions import until
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

HOST = "127.0.0.2"
LEVEL = "landlock"
WITHIN_S = 120.0
AT_REST = ("waiting", "error", "requires_action")


class Site(ThreadingHTTPServer):
    """A server that counts how often it was asked."""

    asked = 0


class Page(BaseHTTPRequestHandler):
    """Answers with a text."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Site)
        self.server.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from outside\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@contextmanager
def running_site() -> Iterator[Site]:
    with Site((HOST, 0), Page) as site:
        serving = threading.Thread(target=site.serve_forever)
        serving.start()
        try:
            yield site
        finally:
            site.shutdown()
            serving.join()


@contextmanager
def stack_beside(host_port: str, home: Path) -> Iterator[LocalStack]:
    """Run a stack whose node may let workspaces reach the server."""
    stack = LocalStack.at(
        home,
        PARLEY_ENVIRONMENT="development",
        TOOLRUNNER_SANDBOX_LEVEL=LEVEL,
        TOOLRUNNER_EGRESS_PRIVATE_HOSTS=host_port,
    )
    stack.ensure_up()
    try:
        yield stack
    finally:
        stopped = stack.parley("down")
        assert stopped.returncode == 0, stopped.stderr
        _, left = psutil.wait_procs(stack.strangers(), timeout=5)
        assert left == []


def template_reaching(stack: LocalStack, host_port: str) -> str:
    """Make a template of workspaces that may reach the server, and return its id."""
    network = {"access": "proxy", "allowed_hosts": [host_port]}
    template = {"name": "reaching", "kind": "scratch", "scratch": {}, "network": network}
    return str(call(stack, "POST", "/api/v1/templates", template)["id"])


def ready_workspace(stack: LocalStack, template_id: str) -> dict[str, Any]:
    """Make a workspace of a template, and wait for it."""
    made = call(stack, "POST", "/api/v1/workspaces", {"template_id": template_id, "name": "w"})

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = call(stack, "GET", f"/api/v1/workspaces/{made['id']}")
        return found if found["state"] == "ready" else None

    ready = until(look, "the workspace", within_s=WITHIN_S)
    assert ready is not None
    return ready


def rested(stack: LocalStack, chat_id: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        chat: dict[str, Any] = call(stack, "GET", f"/api/v1/chats/{chat_id}")
        waits_for = [each["kind"] for each in (chat["required_action"] or {}).get("actions", ())]
        return chat if chat["status"] in AT_REST and "agents" not in waits_for else None

    chat = until(look, f"the end of {chat_id}", within_s=WITHIN_S)
    assert chat is not None
    return chat


def outputs_of(stack: LocalStack, chat_id: str) -> list[str]:
    page = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages?limit=200")
    return [
        part["result"]["output"]
        for message in sorted(page["messages"], key=lambda each: each["id"])
        for part in message["content"]
        if part["type"] == "tool-result" and part["tool_name"] == "execute"
    ]


@dataclass(frozen=True, slots=True)
class Reaching:
    """A stack with a template of workspaces that may reach a server."""

    stack: LocalStack
    site: Site
    template_id: str

    @property
    def host_port(self) -> str:
        """Return where the server is."""
        return f"{HOST}:{self.site.server_address[1]}"

    def rested(self, *steps: str) -> tuple[str, dict[str, Any]]:
        """Let a new chat in a new workspace take steps; return its id and how it rests."""
        workspace = ready_workspace(self.stack, self.template_id)
        if workspace["sandbox_level"] != LEVEL:
            pytest.skip(f"this machine offers level {workspace['sandbox_level']}")
        content = [{"type": "text", "text": "\n".join(steps)}]
        body = {"content": content, "workspace_id": workspace["id"], "title": "makes"}
        chat_id = call(self.stack, "POST", "/api/v1/chats", body)["id"]
        return chat_id, rested(self.stack, chat_id)

    def makefile(self) -> str:
        """Return the step that writes a makefile whose program fetches."""
        text = f"all:\n\t@curl -sS -m 20 http://{self.host_port}/\n"
        return f"call: write_file {json.dumps({'path': 'Makefile', 'content': text})}"


@pytest.fixture(scope="module")
def reaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reaching]:
    with running_site() as site:
        host_port = f"{HOST}:{site.server_address[1]}"
        with stack_beside(host_port, tmp_path_factory.mktemp("home")) as stack:
            yield Reaching(stack, site, template_reaching(stack, host_port))


def test_a_command_after_make_has_fetched_something_asks_first(reaching: Reaching) -> None:
    asked = reaching.site.asked
    steps = (reaching.makefile(), "run: echo before", "run: make", "run: echo after")
    chat_id, chat = reaching.rested(*steps)
    shown = json.dumps(call(reaching.stack, "GET", f"/api/v1/chats/{chat_id}/messages?limit=200"))
    assert outputs_of(reaching.stack, chat_id) == ["before\n", "from outside\n"]
    assert reaching.site.asked == asked + 1
    assert chat["status"] == "requires_action"
    (action,) = chat["required_action"]["actions"]
    assert action["kind"] == "approval"
    assert "has read content of a download" in json.dumps(action)
    assert "reached" not in shown


def test_a_command_after_an_agent_has_fetched_something_in_its_copy_asks_first(
    reaching: Reaching,
) -> None:
    agent = {"prompt": "run: make", "isolation": "fork"}
    chat_id, chat = reaching.rested(
        reaching.makefile(),
        "run: echo before",
        f"call: spawn_agent {json.dumps(agent)}",
        "call: wait_agents {}",
        "run: echo after",
    )
    assert outputs_of(reaching.stack, chat_id) == ["before\n"]
    assert chat["status"] == "requires_action"
    (action,) = chat["required_action"]["actions"]
    assert action["kind"] == "approval"
    assert "has read content of a download" in json.dumps(action)
