"""Workspaces over a whole stack: made over HTTP and by a command, worked in, stopped, removed."""

import asyncio
from typing import Any

import pytest

from parley.clock import SystemClock
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

WORKSPACES = "/api/v1/workspaces"
SETTLING = ("pending", "preparing", "stopping")


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


async def asked(
    client: HttpClient, status: int, method: str, path: str, body: Any = None, **headers: str
) -> Any:
    """Make a request that must be answered with `status`, and return its document."""
    reply = await client.request(method, path, body, headers)
    assert reply.status == status, (method, path, reply.body)
    return reply.json()


async def settled(client: HttpClient, workspace: Any) -> Any:
    """Wait until nothing is being done about a workspace."""
    async with asyncio.timeout(180):
        while workspace["state"] in SETTLING:
            await SystemClock().sleep(0.1)
            path = f"{WORKSPACES}/{workspace['id']}"
            workspace = await asked(client, 200, "GET", path)
    return workspace


async def test_a_workspace_is_made_worked_in_stopped_started_and_removed(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    templates = (await asked(client, 200, "GET", "/api/v1/templates"))["items"]
    (scratch,) = [each for each in templates if each["name"] == "scratch"]
    asked_for = {"template_id": scratch["id"], "name": "by-hand"}
    made = await asked(client, 202, "POST", WORKSPACES, asked_for)
    ready = await settled(client, made)
    assert (ready["state"], ready["epoch"], ready["name"]) == ("ready", 1, "by-hand")

    path = f"{WORKSPACES}/{made['id']}"
    # The model of this stack runs a command in the chat's own scratch workspace.
    content = [{"type": "text", "text": "run: echo hello"}]
    chat = await asked(client, 201, "POST", "/api/v1/chats", {"content": content})
    processes = f"/api/v1/chats/{chat['id']}/processes"
    async with asyncio.timeout(180):
        while not (await asked(client, 200, "GET", processes))["items"]:
            await SystemClock().sleep(0.2)
    own = await asked(client, 200, "GET", f"{WORKSPACES}/{chat['id']}")
    assert (own["state"] in ("ready", "busy"), own["epoch"]) == (True, 1)

    stopped = await settled(client, await asked(client, 202, "POST", f"{path}/stop", {}))
    assert (stopped["state"], stopped["stop_reason"]) == ("stopped", "requested")
    again = await settled(client, await asked(client, 202, "POST", f"{path}/start", {}))
    assert (again["state"], again["epoch"]) == ("ready", 2)
    quota = (await asked(client, 200, "GET", "/api/v1/quota"))["items"]
    assert quota[0]["dimension"] == "live_workspaces"
    assert quota[0]["used"] >= 1
    gone = await settled(client, await asked(client, 202, "DELETE", path))
    assert gone["state"] == "deleted"


def test_the_command_makes_lists_stops_and_removes(stack: LocalStack) -> None:
    def parley(*words: str, code: int = 0) -> str:
        ended = stack.parley("workspace", *words)
        assert ended.returncode == code, ended.stderr
        return ended.stdout + ended.stderr

    assert "scratch" in parley("templates")
    assert parley("create", "scratch", "--name", "by-command").startswith("by-command is ready")
    assert "by-command" in parley("ls")
    assert parley("stop", "by-command").startswith("by-command is stopped")
    assert "by-command" not in parley("ls")
    assert "stopped" in parley("ls", "--all")
    assert parley("rm", "by-command") == "Removed by-command.\n"
    assert "there is no workspace by-command" in parley("stop", "by-command", code=1)
