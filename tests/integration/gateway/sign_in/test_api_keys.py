"""People make API keys of their own, and administrators those of service accounts."""

from typing import Any

import pytest

from parley.identity import Role
from support.gateway.browser import Browser, invited, new_user
from support.gateway.stack import GatewayStack
from support.gateway.users import client_with
from support.net.http_client import HttpClient

KEYS = "/api/v1/me/api-keys"
HELLO = {"content": [{"type": "text", "text": "hello"}]}
DAY_S = 24 * 3600


def client(stack: GatewayStack, key: str) -> HttpClient:
    return HttpClient(stack.gateway.http.port, {"Authorization": f"Bearer {key}"})


async def made(browser: Browser, **fields: Any) -> Any:
    reply = await browser.call("POST", KEYS, {"name": "laptop", **fields})
    assert reply.status == 201, reply.body
    return reply.json()


async def test_a_key_is_shown_once_and_listed_with_its_last_use(stack: GatewayStack) -> None:
    browser = await invited(stack)
    stack.clock.advance(90)
    key = await made(browser)
    before = (await browser.call("GET", KEYS)).json()["items"]
    used = await client(stack, key["key"]).request("GET", "/api/v1/me")
    listed = await browser.call("GET", KEYS)
    (after,) = listed.json()["items"]

    assert (used.status, used.json()["login"], used.json()["signed_in_by"]) == (
        200,
        "ada",
        "api_key",
    )
    assert key["key"].startswith(f"pk_{key['id']}_")
    assert before == [{name: value for name, value in key.items() if name != "key"}]
    assert (before[0]["name"], before[0]["scopes"], before[0]["last_used_at"]) == (
        "laptop",
        [],
        None,
    )
    assert after["last_used_at"].endswith(":00Z")
    assert key["key"].encode() not in listed.body


async def test_a_key_ends_after_90_days_unless_told(stack: GatewayStack) -> None:
    browser = await invited(stack)
    long, short = await made(browser), await made(browser, lifetime_s=3600)
    statuses = []
    for step_s in (3599, 1, 90 * DAY_S - 3601, 1):
        stack.clock.advance(step_s)
        statuses.append(
            [
                (await client(stack, each["key"]).request("GET", "/api/v1/me")).status
                for each in (short, long)
            ]
        )

    assert statuses == [[200, 200], [401, 200], [401, 200], [401, 401]]


async def test_a_scoped_key_does_what_its_scopes_say_and_no_more(stack: GatewayStack) -> None:
    browser = await invited(stack)
    key = await made(browser, scopes=["chat:read"])
    reader = client(stack, key["key"])
    read = await reader.request("GET", "/api/v1/chats")
    write = await reader.request("POST", "/api/v1/chats", HELLO)
    own_keys = await reader.request("POST", KEYS, {"name": "more"})
    renamed = await reader.request("PATCH", "/api/v1/me", {"display_name": "Eve"})

    assert read.status == 200
    assert (write.status, write.json()["code"], write.json()["scope"]) == (
        403,
        "SCOPE_MISSING",
        "chat:write",
    )
    assert (own_keys.status, own_keys.json()["code"]) == (403, "SCOPE_MISSING")
    assert (renamed.status, renamed.json()["code"]) == (403, "SCOPE_MISSING")


async def test_a_key_with_any_scope_can_ask_who_it_acts_for(stack: GatewayStack) -> None:
    browser = await invited(stack)
    for scope in ("chat:read", "audit:read"):
        key = await made(browser, scopes=[scope])
        reply = await client(stack, key["key"]).request("GET", "/api/v1/me")
        own = (await browser.call("GET", "/api/v1/me")).json()
        assert (reply.status, reply.json()["login"]) == (200, own["login"])


async def test_a_key_for_chats_alone_runs_no_checks_of_goals(stack: GatewayStack) -> None:
    key = await made(await invited(stack), scopes=["chat:read", "chat:write"])
    writer = client(stack, key["key"])
    path = "/api/v1/chats/00000000-0000-0000-0000-0000000000e2/goal"
    goal = {"text": "Mend it.", "check_command": "make test"}
    for reply in (
        await writer.request("PUT", path, goal),
        await writer.request("POST", f"{path}/resume"),
    ):
        assert (reply.status, reply.json()["scope"]) == (403, "workspace:write")


async def test_a_scope_gives_no_right_that_the_user_lacks(stack: GatewayStack) -> None:
    browser = await invited(stack)
    key = await made(browser, scopes=["identity:admin", "identity:read"])
    reply = await client(stack, key["key"]).request(
        "POST", "/api/v1/users", {"login": "eve", "role": "member"}
    )

    assert (reply.status, reply.json()["code"]) == (403, "FORBIDDEN")


async def test_a_revoked_key_is_refused_at_once(stack: GatewayStack) -> None:
    browser = await invited(stack)
    key = await made(browser)
    user = client(stack, key["key"])
    before = await user.request("GET", "/api/v1/me")
    revoked = await browser.call("DELETE", f"{KEYS}/{key['id']}")
    after = await user.request("GET", "/api/v1/me")
    again = await browser.call("DELETE", f"{KEYS}/{key['id']}")
    listed = (await browser.call("GET", KEYS)).json()["items"]
    ended = (await browser.call("GET", f"{KEYS}?include_ended=true")).json()["items"]

    assert (before.status, revoked.status, after.status) == (200, 200, 401)
    assert again.json() == revoked.json()
    assert (listed, [each["id"] for each in ended]) == ([], [key["id"]])


async def test_keys_of_others_look_absent(stack: GatewayStack) -> None:
    ada, eve = await invited(stack), await invited(stack, "eve")
    key = await made(ada)
    ada_id = key["user_id"]
    replies = [
        await eve.call("DELETE", f"{KEYS}/{key['id']}"),
        await eve.call("GET", f"/api/v1/users/{ada_id}/api-keys"),
        await eve.call("DELETE", f"/api/v1/users/{ada_id}/api-keys/{key['id']}"),
    ]

    assert [reply.status for reply in replies] == [404, 403, 403]
    assert (await client(stack, key["key"]).request("GET", "/api/v1/me")).status == 200


async def test_a_service_account_has_keys_and_never_signs_in(stack: GatewayStack) -> None:
    account_id = await new_user(stack, "nightly", kind="service")
    path = f"/api/v1/users/{account_id}/api-keys"
    key = await stack.owner.request("POST", path, {"name": "cron", "scopes": ["chat:write"]})
    chat = await client(stack, key.json()["key"]).request("POST", "/api/v1/chats", HELLO)
    link = await stack.owner.request("POST", f"/api/v1/users/{account_id}/sign-in-links")
    unlimited = (await stack.owner.request("POST", path, {"name": "all"})).json()["key"]
    totp = await client(stack, unlimited).request("POST", "/api/v1/me/totp")
    shown = await stack.owner.request("GET", f"/api/v1/users/{account_id}")
    revoked = await stack.owner.request("DELETE", f"{path}/{key.json()['id']}")

    assert (key.status, chat.status, revoked.status) == (201, 201, 200)
    assert (link.status, link.json()["code"]) == (409, "SERVICE_ACCOUNT")
    assert (totp.status, totp.json()["code"]) == (409, "SERVICE_ACCOUNT")
    assert shown.json()["kind"] == "service"


async def test_administrators_make_no_keys_of_people_and_revoke_those_they_manage(
    stack: GatewayStack, identity_database: str
) -> None:
    admin = await client_with(stack, identity_database, Role.ADMIN)
    browser = await invited(stack, "eve")
    key = await made(browser)
    path = f"/api/v1/users/{key['user_id']}/api-keys"
    for_person = await admin.request("POST", path, {"name": "spy"})
    owner_id = (await stack.owner.request("GET", "/api/v1/me")).json()["id"]
    of_owner = await admin.request("GET", f"/api/v1/users/{owner_id}/api-keys")
    revoked = await admin.request("DELETE", f"{path}/{key['id']}")

    assert (for_person.status, for_person.json()["code"]) == (409, "NOT_A_SERVICE_ACCOUNT")
    assert (of_owner.status, of_owner.json()["code"]) == (403, "ROLE_EXCEEDS_CALLER")
    assert revoked.status == 200


async def test_the_key_in_the_home_is_listed_and_not_revoked(stack: GatewayStack) -> None:
    (key,) = (await stack.owner.request("GET", KEYS)).json()["items"]
    reply = await stack.owner.request("DELETE", f"{KEYS}/{key['id']}")

    assert (key["is_from_setting"], key["expires_at"]) == (True, None)
    assert (reply.status, reply.json()["code"]) == (404, "API_KEY_NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "INVALID_REQUEST"),
        ({"name": ""}, "INVALID_REQUEST"),
        ({"name": "a\u202eb"}, "INVALID_REQUEST"),
        ({"name": "a", "lifetime_s": 59}, "INVALID_REQUEST"),
        ({"name": "a", "lifetime_s": 31622401}, "INVALID_REQUEST"),
        ({"name": "a", "scopes": ["chat:everything"]}, "UNKNOWN_SCOPE"),
        ({"name": "a", "user_id": "00000000-0000-0000-0000-000000000001"}, "INVALID_REQUEST"),
    ],
)
async def test_a_key_that_cannot_be_is_refused(
    stack: GatewayStack, body: dict[str, Any], code: str
) -> None:
    reply = await stack.owner.request("POST", KEYS, body)

    assert (reply.status, reply.json()["code"]) == (422, code)


async def test_there_are_only_so_many_keys_and_a_repeated_request_makes_none(
    stack: GatewayStack,
) -> None:
    first = await stack.owner.request("POST", KEYS, {"name": "k"}, {"Idempotency-Key": "once"})
    again = await stack.owner.request("POST", KEYS, {"name": "k"}, {"Idempotency-Key": "once"})
    # The key in the home is one of them.
    for _ in range(98):
        assert (await stack.owner.request("POST", KEYS, {"name": "k"})).status == 201
    full = await stack.owner.request("POST", KEYS, {"name": "k"})

    assert (again.status, again.json()["code"], again.json()["id"]) == (
        409,
        "SECRET_ALREADY_SHOWN",
        first.json()["id"],
    )
    assert (full.status, full.json()["code"], full.json()["api_keys_max"]) == (
        409,
        "TOO_MANY_API_KEYS",
        100,
    )
