"""The limit of running chats per user, changed while a real stack runs."""

import asyncio
from typing import Any

import pytest

from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

SOON_S = 60


class Owner:
    """The owner of the installation, over HTTP."""

    def __init__(self, stack: LocalStack) -> None:
        key = stack.home.api_key_file.read_text().strip()
        port = int(stack.http.rpartition(":")[2])
        self._client = HttpClient(port, {"Authorization": f"Bearer {key}"})

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = await self._client.request(method, f"/api/v1{path}", body)
        assert reply.status < 300, reply.body
        return reply.json() if reply.body else None

    async def limit(self, chats_max: int) -> None:
        await self.ask("PATCH", "/settings", {"running_chats_per_user_max": chats_max})

    async def start(self) -> str:
        text = {"type": "text", "text": "count to 900"}
        chat: dict[str, Any] = await self.ask("POST", "/chats", {"content": [text]})
        return str(chat["id"])

    async def until_waiting(self, chat_id: str, *, is_waiting: bool) -> None:
        """Wait until a running chat does or does not wait in line."""
        async with asyncio.timeout(SOON_S):
            while True:
                chat = await self.ask("GET", f"/chats/{chat_id}")
                assert chat["status"] == "running"
                if (chat["place_in_line"] > 0) is is_waiting:
                    return


async def test_a_changed_limit_of_running_chats_holds_without_a_restart(stack: LocalStack) -> None:
    owner = Owner(stack)
    chats: list[str] = []
    try:
        await owner.limit(1)
        # The first may be claimed before the change is known everywhere; those after it wait.
        chats += [await owner.start() for _ in range(3)]
        await owner.until_waiting(chats[2], is_waiting=True)
        await owner.limit(3)
        await owner.until_waiting(chats[2], is_waiting=False)
    finally:
        await owner.limit(0)
        for chat_id in chats:
            await owner.ask("DELETE", f"/chats/{chat_id}")
