"""A group's limit and what is shared with it, from its first member to its end, in a real stack."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from parley.identity import ApiKey
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

API = "/api/v1"
SOON_S = 60
# Users get keys of their own over HTTP one day; until then a test gives one to hers.
INSERT_KEY = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at)
    VALUES ($1, $2, $3, false, now())
"""
# The demo's calls cost nothing.
INSERT_COST = """
    INSERT INTO chat.usage (id, chat_id, root_chat_id, owner_id, purpose, provider, model, outcome,
        input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_write_tokens,
        cost_micros, model_runtime_ms, created_at)
    VALUES (gen_random_uuid(), $1, $1, $2, 'turn', 'p', 'm', 'done', 1, 1, 0, 0, 0, 500, 1, now())
"""


@pytest.fixture
async def database(stack: LocalStack) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(stack.endpoints()["database"])
    yield connection
    await connection.close()


def client_with(stack: LocalStack, key: str) -> HttpClient:
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


async def asked(client: HttpClient, status: int, method: str, path: str, body: Any = None) -> Any:
    """Make a request that must be answered with `status`, and return its document."""
    reply = await client.request(method, f"{API}{path}", body)
    assert reply.status == status, (method, path, reply.body)
    return reply.json() if reply.body else None


async def until(question: Callable[[], Awaitable[object]], answer: object) -> None:
    async with asyncio.timeout(SOON_S):
        while await question() != answer:
            pass


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


async def test_a_group_shares_and_limits_from_its_first_member_to_its_end(
    stack: LocalStack, database: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    owner = client_with(stack, stack.home.api_key_file.read_text().strip())
    user = await asked(owner, 201, "POST", "/users", {"login": "grace", "role": "member"})
    key = ApiKey.generate()
    await database.execute(INSERT_KEY, key.id, user["id"], key.digest())
    grace = client_with(stack, key.reveal())
    group = await asked(owner, 201, "POST", "/groups", {"name": "Research"})
    membership = f"/groups/{group['id']}/members/{user['id']}"
    limit = f"/spend-limits/groups/{group['id']}"

    own = await asked(grace, 201, "POST", "/chats", said("repeat after me: mine"))
    shared = await asked(owner, 201, "POST", "/chats", said("repeat after me: ours"))
    await asked(
        owner, 200, "PUT", f"/chats/{shared['id']}/shares", {"shares": [{"group_id": group["id"]}]}
    )
    await database.execute(INSERT_COST, own["id"], user["id"])
    await asked(owner, 200, "PUT", limit, {"limit_micros": 500, "period": "month"})

    async def seen() -> list[str]:
        page = await asked(grace, 200, "GET", "/chats?shared_with_me=true")
        return [chat["id"] for chat in page["items"]]

    async def reading() -> int:
        return (await grace.request("GET", f"{API}/chats/{shared['id']}")).status

    async def standing() -> tuple[int, str | None]:
        spend = await asked(grace, 200, "GET", "/me/spend")
        return spend["spent_micros"], (spend["limit"] or {}).get("group_id")

    async def sending() -> tuple[int, str | None]:
        reply = await grace.request("POST", f"{API}/chats/{own['id']}/messages", said("more"))
        return reply.status, reply.json().get("code")

    async def may_send() -> bool:
        return (await sending())[0] == 202

    async def limits() -> list[str]:
        page = await asked(owner, 200, "GET", "/spend-limits")
        return [each["group_id"] for each in page["items"] if each.get("group_id")]

    assert (await seen(), await may_send(), await reading()) == ([], True, 404)

    await asked(owner, 200, "PUT", membership)
    await until(seen, [shared["id"]])
    await until(sending, (429, "USAGE_LIMIT"))
    await until(reading, 200)
    await until(standing, (500, group["id"]))

    async with asyncio.timeout(SOON_S), grace.stream(f"{API}/chats/{shared['id']}/events") as told:
        assert await told.event() is not None
        await asked(owner, 204, "DELETE", membership)
        last: Any = None
        while (event := await told.event()) is not None:
            last = event.data
    assert last["error"]["code"] == "permission_revoked"
    await until(seen, [])
    await until(may_send, True)

    await asked(owner, 200, "PUT", membership)
    await until(seen, [shared["id"]])
    await asked(owner, 204, "DELETE", f"/groups/{group['id']}")
    await until(seen, [])
    await until(may_send, True)
    await until(limits, [])

    async def shares() -> Any:
        return (await asked(owner, 200, "GET", f"/chats/{shared['id']}/shares"))["shares"]

    await until(shares, [])
    assert stack.parley("audit").returncode == 0
