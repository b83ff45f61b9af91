"""A user is locked out while a turn of theirs runs, and later deleted, in a real stack."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from parley.client import Refused, connect
from parley.identity import ApiKey
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

SOON_S = 60
# Users get keys of their own over HTTP one day; until then a test gives one to its user.
INSERT_KEY = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at)
    VALUES ($1, $2, $3, false, now())
"""
STATUS = "SELECT status FROM chat.chat_exec WHERE chat_id = $1"


async def asked(stack: LocalStack, method: str, path: str, body: Any = None, key: str = "") -> Any:
    """Make a request with a key, or as the owner of the installation."""
    key = key or stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    client = HttpClient(port, {"Authorization": f"Bearer {key}"})
    reply = await client.request(method, f"/api/v1{path}", body)
    assert reply.status < 300, reply.body
    return reply.json() if reply.body else None


async def until(question: Callable[[], Awaitable[object]], answer: object) -> None:
    async with asyncio.timeout(SOON_S):
        while await question() != answer:
            pass


async def test_a_locked_out_user_stops_working_and_a_deleted_one_leaves_nothing(
    stack: LocalStack,
) -> None:
    user = await asked(stack, "POST", "/users", {"login": "lea", "role": "admin"})
    database = await asyncpg.connect(stack.endpoints()["database"])
    try:
        key = ApiKey.generate()
        await database.execute(INSERT_KEY, key.id, user["id"], key.digest())
        wanted = {"name": "lea's", "scopes": ["chat:read", "chat:write"]}
        issued = await asked(stack, "POST", "/service-tokens", wanted, key.reveal())
        token = issued["token"]
        async with connect(*stack.endpoints()["grpc"]["chatd"], token=token) as parley:
            chat = await parley.create_chat("count to 900")
            await asked(stack, "POST", f"/users/{user['id']}/deactivate")
            await until(lambda: database.fetchval(STATUS, chat.id), "waiting")

            async def is_refused() -> bool:
                try:
                    await parley.send_message(chat.id, "go on")
                except Refused:
                    return True
                return False

            await until(is_refused, True)
        await asked(stack, "DELETE", f"/users/{user['id']}")
        await until(lambda: database.fetchval(STATUS, chat.id), None)
    finally:
        await database.close()
    assert stack.parley("audit").returncode == 0
