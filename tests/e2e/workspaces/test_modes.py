"""Plan mode in a running stack: what a model calls there changes nothing."""

import asyncio
import json
from typing import Any

import pytest

from parley.clock import SystemClock
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
REST_S_MAX = 120


class Chat:
    """A chat with the scripted model."""

    def __init__(self, client: HttpClient, path: str) -> None:
        self.client = client
        self.path = path

    @classmethod
    async def opened(cls, stack: LocalStack, *steps: str, mode: str = "") -> "Chat":
        key = stack.home.api_key_file.read_text().strip()
        port = int(stack.http.rpartition(":")[2])
        client = HttpClient(port, {"Authorization": f"Bearer {key}"})
        body = {"content": [_text(steps)], **({"mode": mode} if mode else {})}
        reply = await client.request("POST", CHATS, body, {})
        assert reply.status == 201, reply.body
        chat = cls(client, f"{CHATS}/{reply.json()['id']}")
        await chat.rest()
        return chat

    async def ask(self, status: int, method: str, path: str, body: Any = None) -> Any:
        reply = await self.client.request(method, self.path + path, body, {})
        assert reply.status == status, (method, path, reply.body)
        return reply.json()

    async def send(self, *steps: str) -> None:
        await self.ask(202, "POST", "/messages", {"content": [_text(steps)]})
        await self.rest()

    async def rest(self) -> None:
        async with asyncio.timeout(REST_S_MAX):
            while (await self.ask(200, "GET", ""))["status"] not in ("waiting", "error"):
                await SystemClock().sleep(0.1)

    async def results(self) -> list[dict[str, Any]]:
        """Return the results of all calls, oldest first."""
        messages = (await self.ask(200, "GET", "/messages"))["messages"]
        return [
            json.loads(part["result"]) if isinstance(part["result"], str) else part["result"]
            for message in sorted(messages, key=lambda message: message["id"])
            for part in message["content"]
            if part["type"] == "tool-result"
        ]


def _text(steps: tuple[str, ...]) -> dict[str, str]:
    return {"type": "text", "text": "\n".join(steps)}


def execute(command: str) -> str:
    return f"call: execute {json.dumps({'command': command})}"


async def test_in_plan_mode_a_redirect_is_refused_by_the_sandbox_and_the_file_is_not_there(
    stack: LocalStack,
) -> None:
    write = json.dumps({"path": "new", "content": "hacked"})
    chat = await Chat.opened(
        stack, execute("echo hacked > new"), f"call: write_file {write}", mode="plan"
    )
    redirected, written = await chat.results()
    assert redirected["ok"] is False
    assert redirected["output"].endswith(("Read-only file system\n", "Permission denied\n"))
    error = "write_file cannot be called in plan mode, in which nothing is changed"
    assert (written["ok"], written["error"]) == (False, error)
    await chat.ask(200, "PATCH", "", {"mode": None})
    await chat.send(execute("ls -A; echo allowed > new; cat new"))
    assert (await chat.results())[-1]["output"] == "allowed\n"
