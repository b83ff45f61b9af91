"""Tools that clients execute themselves: over HTTP, and with the example for the typed client."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
REST_S_MAX = 120
CALLING = "tool=look_up_stock,args=%7B%22product%22%3A%22pens%22%7D,rounds=1"


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[LocalStack]:
    """Run a stack whose model calls the client's tool once and then answers."""
    async with MockModels.serving(clock=SystemClock(), behaviour=CALLING) as mock:
        stack = LocalStack.at(home, OPENAI_BASE_URL=f"{mock.url}/v1", OPENAI_API_KEY="sk-test")
        started = await asyncio.to_thread(stack.up, "--chatd", "1")
        try:
            assert started.returncode == 0, started.stdout + started.stderr
            yield stack
        finally:
            await asyncio.to_thread(stack.parley, "down")


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


def run_example(stack: LocalStack, token: str) -> "subprocess.CompletedProcess[str]":
    """Run the example with a token."""
    token_file = stack.home.root / "shop.token"
    token_file.write_text(token)
    addresses = stack.endpoints()["grpc"]["chatd"]
    program = ROOT / "examples" / "client_tools.py"
    return subprocess.run(
        [sys.executable, program, "--token-file", token_file, *addresses, "how many pens?"],
        env=stack.variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


async def seen(client: HttpClient, path: str, *statuses: str) -> dict[str, Any]:
    """Return a chat once it is in one of these statuses."""
    async with asyncio.timeout(REST_S_MAX):
        while True:
            chat: dict[str, Any] = (await client.request("GET", path)).json()
            if chat["status"] in statuses:
                return chat


async def answered_over_http(client: HttpClient) -> dict[str, Any]:
    """Create a chat with a tool, answer what it waits for, and return it as it waited."""
    body = {
        "content": [{"type": "text", "text": "how many pens?"}],
        "client_tools": [{"name": "look_up_stock", "input_schema": {"type": "object"}}],
    }
    created = await client.request("POST", "/api/v1/chats", body)
    path = f"/api/v1/chats/{created.json()['id']}"
    waiting = await seen(client, path, "requires_action")
    (call,) = waiting["required_action"]["tool_calls"]
    result = {"tool_call_id": call["tool_call_id"], "output": {"pieces": 12}}
    answered = await client.request("POST", f"{path}/tool-results", {"results": [result]})
    assert answered.status == 202, answered.body
    assert (await seen(client, path, "waiting", "error"))["required_action"] is None
    return waiting


async def test_clients_declare_tools_see_their_calls_and_answer_them(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        waiting = await answered_over_http(client_of(stack))
        issued = await asyncio.to_thread(
            stack.parley, "token", "issue", "shop", "--scope", "chat:read", "--scope", "chat:write"
        )
        assert issued.returncode == 0, issued.stderr
        ran = await asyncio.to_thread(run_example, stack, issued.stdout)

    (call,) = waiting["required_action"]["tool_calls"]
    assert (waiting["status"], call["tool_name"], call["args"]) == (
        "requires_action",
        "look_up_stock",
        {"product": "pens"},
    )
    assert waiting["required_action"]["deadline_at"] > waiting["updated_at"]
    assert (ran.returncode, ran.stderr) == (0, "")
    told, answer = ran.stdout.split("\n", 1)
    assert (told, bool(answer.strip())) == ('look_up_stock {"product":"pens"}', True)
