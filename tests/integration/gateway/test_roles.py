import asyncpg
import pytest

from parley.identity import Role
from support.gateway_stack import GatewayStack
from support.gateway_users import USER_ID, client_with

HELLO = {"content": [{"type": "text", "text": "hello"}]}
TOKEN = {"name": "nightly", "scopes": ["chat:read"]}


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        (Role.OWNER, (201, 201, 200)),
        (Role.ADMIN, (201, 201, 200)),
        (Role.MEMBER, (201, 403, 403)),
        (Role.AUDITOR, (403, 403, 200)),
    ],
)
async def test_each_role_may_do_its_own_things(
    stack: GatewayStack, identity_database: str, role: Role, statuses: tuple[int, ...]
) -> None:
    client = await client_with(stack, identity_database, role)

    replies = (
        await client.request("POST", "/api/v1/chats", HELLO),
        await client.request("POST", "/api/v1/service-tokens", TOKEN),
        await client.request("GET", "/api/v1/service-tokens"),
    )

    assert tuple(reply.status for reply in replies) == statuses


async def test_an_admin_cannot_issue_a_token_that_acts_for_the_owner(
    stack: GatewayStack, identity_database: str
) -> None:
    owner = (await stack.owner.request("GET", "/api/v1/me")).json()
    admin = await client_with(stack, identity_database, Role.ADMIN)

    reply = await admin.request("POST", "/api/v1/service-tokens", TOKEN | {"user_id": owner["id"]})

    assert (reply.status, reply.json()["code"]) == (403, "ROLE_EXCEEDS_CALLER")


async def test_an_expired_key_and_a_deactivated_user_are_refused(
    stack: GatewayStack, identity_database: str
) -> None:
    client = await client_with(stack, identity_database, Role.MEMBER)
    connection = await asyncpg.connect(identity_database)
    before = await client.request("GET", "/api/v1/me")
    await connection.execute(
        "UPDATE identity.users SET state = 'deactivated', deactivated_at = now() WHERE id = $1",
        USER_ID,
    )
    deactivated = await client.request("GET", "/api/v1/me")
    await connection.execute(
        "UPDATE identity.users SET state = 'active', deactivated_at = NULL WHERE id = $1", USER_ID
    )
    await connection.close()
    stack.clock.advance(24 * 3600)
    expired = await client.request("GET", "/api/v1/me")

    assert (before.status, deactivated.status, expired.status) == (200, 401, 401)
