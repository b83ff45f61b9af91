import asyncpg
import pytest

from parley.identity import Role
from support.gateway.stack import GatewayStack
from support.gateway.users import USER_ID, client_with

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


@pytest.mark.parametrize("role", [Role.MEMBER, Role.ADMIN, Role.AUDITOR])
async def test_service_tokens_are_issued_for_oneself_only(
    stack: GatewayStack, identity_database: str, role: Role
) -> None:
    owner = (await stack.owner.request("GET", "/api/v1/me")).json()
    other = await client_with(stack, identity_database, role)
    path = "/api/v1/service-tokens"

    own = await stack.owner.request("POST", path, TOKEN | {"user_id": owner["id"]})
    for_another = await stack.owner.request("POST", path, TOKEN | {"user_id": USER_ID})
    for_the_owner = await other.request("POST", path, TOKEN | {"user_id": owner["id"]})

    assert (own.status, own.json()["user_id"]) == (201, owner["id"])
    assert (for_another.status, for_another.json()["code"]) == (403, "TOKEN_FOR_ANOTHER_USER")
    assert for_the_owner.status == 403
    listed = (await stack.owner.request("GET", path)).json()["items"]
    assert [each["id"] for each in listed] == [own.json()["id"]]


@pytest.mark.parametrize(
    ("caller", "statuses"),
    [
        (Role.OWNER, {"member": 201, "auditor": 201, "admin": 201}),
        (Role.ADMIN, {"member": 201, "auditor": 201, "admin": 403}),
    ],
)
async def test_service_tokens_are_issued_for_service_accounts_within_the_callers_rank(
    stack: GatewayStack, identity_database: str, caller: Role, statuses: dict[str, int]
) -> None:
    client = await client_with(stack, identity_database, caller)
    answers = {}
    for role in statuses:
        body = {"login": f"bot-{role}", "display_name": "Bot", "role": role, "kind": "service"}
        made = await stack.owner.request("POST", "/api/v1/users", body)
        assert made.status == 201, made.body
        answers[role] = await client.request(
            "POST", "/api/v1/service-tokens", TOKEN | {"user_id": made.json()["id"]}
        )
        if answers[role].status == 201:
            assert answers[role].json()["user_id"] == made.json()["id"]
        else:
            assert answers[role].json()["code"] == "ROLE_EXCEEDS_CALLER"

    assert {role: reply.status for role, reply in answers.items()} == statuses


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
