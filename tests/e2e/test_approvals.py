"""Approval rules in a real stack: a call waits, is approved for its chat, and then runs unasked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

REST_S_MAX = 120
COMMAND = "echo written >> note.txt; wc -l note.txt"
CALLING = f"tool=execute,args={quote(json.dumps({'command': COMMAND}))},rounds=1"


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[LocalStack]:
    """Run a stack whose model runs the command once and then answers."""
    async with MockModels.serving(clock=SystemClock(), behaviour=CALLING) as mock:
        stack = LocalStack.at(home, OPENAI_BASE_URL=f"{mock.url}/v1", OPENAI_API_KEY="sk-test")
        started = await asyncio.to_thread(stack.up, "--chatd", "2")
        try:
            assert started.returncode == 0, started.stdout + started.stderr
            yield stack
        finally:
            await asyncio.to_thread(stack.parley, "down")


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


async def seen(client: HttpClient, path: str, *statuses: str) -> dict[str, Any]:
    """Return a chat once it is in one of these statuses."""
    async with asyncio.timeout(REST_S_MAX):
        while True:
            chat: dict[str, Any] = (await client.request("GET", path)).json()
            if chat["status"] in statuses:
                return chat


async def outputs(client: HttpClient, path: str) -> list[str]:
    """Return the results of all calls of a chat."""
    page = (await client.request("GET", f"{path}/messages?limit=100")).json()
    return [
        str(part["result"])
        for message in reversed(page["messages"])
        for part in message["content"]
        if part["type"] == "tool-result"
    ]


async def test_a_command_waits_for_approval_and_then_runs_unasked_in_its_chat(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as stack:
        client = client_of(stack)
        added = await asyncio.to_thread(
            stack.parley, "approvals", "add", "ask", "execute", "--command", "echo *"
        )
        assert added.returncode == 0, added.stderr
        created = await client.request(
            "POST", "/api/v1/chats", {"content": [{"type": "text", "text": "write a note"}]}
        )
        path = f"/api/v1/chats/{created.json()['id']}"
        await seen(client, path, "requires_action")
        assert await outputs(client, path) == []
        (action,) = (await client.request("GET", "/api/v1/actions")).json()["items"]
        assert (action["kind"], action["args"]) == ("approval", {"command": COMMAND})
        answer = f"{path}/actions/{action['id']}/answer"
        digest = action["arguments_digest"]
        wrong = {"decision": "accept", "arguments_digest": digest[::-1]}
        assert (await client.request("POST", answer, wrong)).status == 422
        given = {"decision": "accept", "remember": True, "arguments_digest": digest}
        assert (await client.request("POST", answer, given)).status == 202
        await seen(client, path, "waiting")
        (first,) = await outputs(client, path)
        assert "1 note.txt" in first

        again = {"content": [{"type": "text", "text": "once more"}]}
        assert (await client.request("POST", f"{path}/messages", again)).status == 202
        chat = await seen(client, path, "waiting", "requires_action", "error")
        async with asyncio.timeout(REST_S_MAX):
            while len(told := await outputs(client, path)) < 2:
                chat = await seen(client, path, "waiting", "requires_action", "error")
        assert chat["status"] != "requires_action"
        assert "2 note.txt" in told[-1]

        denied = await asyncio.to_thread(
            stack.parley, "approvals", "add", "deny", "execute", "--everyone", "--reason", "No."
        )
        assert denied.returncode == 0, denied.stderr
        assert (await client.request("POST", f"{path}/messages", again)).status == 202
        async with asyncio.timeout(REST_S_MAX):
            while len(told := await outputs(client, path)) < 3:
                await seen(client, path, "waiting")
        assert "a rule of the installation refuses" in told[-1]
