"""Two turns that think, with a real provider: only where its key is in the environment."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
ANSWER_S_MAX = 180
# What else of the environment says where a key is good for, and which model answers.
BESIDES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "PARLEY_MODEL")


def given(name: str) -> dict[str, str]:
    """Return what the tester gives; without the key the test is skipped."""
    environment = os.environ  # noqa: TID251 (a key is the tester's to give)
    if not environment.get(name):
        pytest.skip(f"{name} is not set: no real provider is asked")
    return {each: environment[each] for each in (name, *BESIDES) if environment.get(each)}


async def answered(client: HttpClient, path: str, text: str) -> str:
    """Ask, thinking hard, and return the answer's words once the chat rests."""
    content = [{"type": "text", "text": text}]
    body: Any = {"content": content, "reasoning_effort": "high"}
    reply = await client.request("POST", path, body)
    assert reply.status in (201, 202), reply.body
    chat = (
        path.removesuffix("/messages") if "/messages" in path else f"{CHATS}/{reply.json()['id']}"
    )
    async with asyncio.timeout(ANSWER_S_MAX):
        while (found := (await client.request("GET", chat)).json())["status"] == "running":
            pass
    assert found["status"] == "waiting", found["last_error"]
    newest = (await client.request("GET", f"{chat}/messages?limit=1")).json()["messages"][0]
    print(newest["usage"], [part["type"] for part in newest["content"]])
    return "".join(part.get("text", "") for part in newest["content"] if part["type"] == "text")


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"])
async def test_thoughts_of_the_first_turn_are_taken_back_with_the_second(
    tmp_path: Path, name: str
) -> None:
    stack = LocalStack.at(tmp_path, **given(name))
    started = await asyncio.to_thread(stack.up, "--chatd", "1")
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        key = stack.home.api_key_file.read_text().strip()
        port = int(stack.http.rpartition(":")[2])
        client = HttpClient(port, {"Authorization": f"Bearer {key}"})
        first = await answered(client, CHATS, "What is 271 times 389? Answer with the digits only.")
        assert "105419" in first.replace(",", "")
        (chat,) = (await client.request("GET", CHATS)).json()["items"]
        second = await answered(
            client,
            f"{CHATS}/{chat['id']}/messages",
            "Look at the clock with your tool, then tell me that product plus one, in digits.",
        )
        assert "105420" in second.replace(",", "")
    finally:
        await asyncio.to_thread(stack.parley, "down")
