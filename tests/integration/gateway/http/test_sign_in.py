import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.identity.engine.sign_in import SESSION_IDLE, SESSION_LIFETIME
from gateway.identity.secret_tokens import csrf_token_of
from parley.identity import ApiKey
from support.gateway.stack import LOGIN_TOKEN, GatewayStack, gateway_stack
from support.net.http_client import HttpClient, Reply

HELLO = {"content": [{"type": "text", "text": "hello"}]}


async def cookie_of(stack: GatewayStack) -> str:
    reply = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")
    return reply.headers["set-cookie"].partition(";")[0]


async def with_key(stack: GatewayStack, authorization: str) -> Reply:
    return await stack.anonymous.request(
        "GET", "/api/v1/me", None, {"Authorization": authorization}
    )


async def test_an_api_key_says_who_is_signed_in(stack: GatewayStack) -> None:
    reply = await stack.owner.request("GET", "/api/v1/me")

    me = reply.json()
    assert me | {"id": "", "created_at": ""} == {
        "id": "",
        "login": "owner",
        "display_name": "Owner",
        "email": None,
        "role": "owner",
        "created_at": "",
        "signed_in_by": "api_key",
    }


async def test_without_a_credential_the_api_says_how_to_send_one(stack: GatewayStack) -> None:
    reply = await stack.anonymous.request("GET", "/api/v1/me")

    assert (reply.status, reply.json()["code"]) == (401, "UNAUTHENTICATED")
    assert reply.headers["www-authenticate"] == 'Bearer realm="parley"'


async def test_a_wrong_key_is_refused_in_every_form(stack: GatewayStack) -> None:
    same_id = ApiKey(stack.owner_key.id, ApiKey.generate().secret)
    credentials = (
        f"Bearer {ApiKey.generate().reveal()}",
        f"Bearer {same_id.reveal()}",
        f"Basic {stack.owner_key.reveal()}",
        "Bearer nonsense",
        "Bearer",
    )
    replies = [await with_key(stack, each) for each in credentials]

    assert {(reply.status, reply.json()["code"]) for reply in replies} == {(401, "INVALID_API_KEY")}
    assert "as Authorization: Bearer KEY" in (await with_key(stack, "Basic x")).json()["detail"]
    assert all(stack.owner_key.secret.encode() not in reply.body for reply in replies)


async def test_the_login_link_works_once_and_makes_a_session(stack: GatewayStack) -> None:
    first = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")
    second = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")
    cookie, _, attributes = first.headers["set-cookie"].partition("; ")

    page = await stack.anonymous.request("GET", "/account", None, {"Cookie": cookie})
    me = await stack.anonymous.request("GET", "/api/v1/me", None, {"Cookie": cookie})

    assert (first.status, first.headers["location"]) == (303, "/")
    assert cookie.startswith("parley_session=")
    assert attributes == "Path=/; HttpOnly; SameSite=Lax; Max-Age=604800"
    assert (second.status, second.json()["code"]) == (403, "LOGIN_LINK_INVALID")
    assert b"Signed in as Owner" in page.body
    assert me.json()["signed_in_by"] == "session"


@pytest.mark.parametrize(("hours", "status"), [(23.9, 303), (24, 403)])
async def test_an_unused_login_link_is_good_for_a_day(
    stack: GatewayStack, hours: float, status: int
) -> None:
    stack.clock.advance(hours * 3600)

    reply = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")

    assert reply.status == status


async def test_racing_clicks_on_the_login_link_make_one_session(stack: GatewayStack) -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        clicks = [
            tasks.create_task(stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}"))
            for _ in range(5)
        ]

    assert sorted(click.result().status for click in clicks) == [303, 403, 403, 403, 403]


@pytest.mark.parametrize("token", ["", "wrong", "%00"])
async def test_a_wrong_login_link_signs_nobody_in(stack: GatewayStack, token: str) -> None:
    reply = await stack.anonymous.request("GET", f"/login?token={token}")

    assert reply.status in (403, 422)
    assert "set-cookie" not in reply.headers


async def test_looking_at_the_login_link_does_not_spend_it(stack: GatewayStack) -> None:
    looked = await stack.anonymous.request("HEAD", f"/login?token={LOGIN_TOKEN}")
    used = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")

    assert (looked.status, used.status) == (405, 303)


async def test_over_https_the_cookie_is_bound_to_its_host(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(
        tmp_path, identity_database, public_url="https://parley.test"
    ) as stack:
        reply = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")

    assert reply.headers["set-cookie"].startswith("__Host-parley_session=")
    assert reply.headers["set-cookie"].endswith("; Secure")
    assert reply.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://parley.test:8080"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": "http://parley.test:8080"}, 201),
        ({"Sec-Fetch-Site": "same-origin", "X-CSRF-Token": ""}, 403),
        ({"Sec-Fetch-Site": "same-origin", "X-CSRF-Token": csrf_token_of("another")}, 403),
    ],
)
async def test_a_cookie_writes_only_for_our_own_page(
    stack: GatewayStack, headers: dict[str, str], status: int
) -> None:
    cookie = await cookie_of(stack)
    sent = {"Cookie": cookie, "X-CSRF-Token": csrf_token_of(cookie.partition("=")[2])}

    reply = await stack.anonymous.request("POST", "/api/v1/chats", HELLO, sent | headers)

    assert reply.status == status


async def test_a_cookie_does_not_read_for_another_site(stack: GatewayStack) -> None:
    cookie = {"Cookie": await cookie_of(stack), "Sec-Fetch-Site": "cross-site"}

    reply = await stack.anonymous.request("GET", "/api/v1/me", None, cookie)

    assert (reply.status, reply.json()["code"]) == (403, "CROSS_SITE_REQUEST")


async def test_a_bearer_request_ignores_cookies(stack: GatewayStack) -> None:
    headers = {"Cookie": await cookie_of(stack), "Authorization": "Bearer nonsense"}

    reply = await stack.anonymous.request("GET", "/api/v1/me", None, headers)

    assert reply.status == 401


async def test_a_session_ends_when_it_lies_idle(stack: GatewayStack) -> None:
    client = HttpClient(stack.gateway.http.port, {"Cookie": await cookie_of(stack)})
    stack.clock.advance((SESSION_IDLE - timedelta(minutes=5)).total_seconds())
    used = await client.request("GET", "/api/v1/me")
    stack.clock.advance((SESSION_IDLE - timedelta(minutes=5)).total_seconds())
    used_again = await client.request("GET", "/api/v1/me")
    stack.clock.advance(SESSION_IDLE.total_seconds())
    idle = await client.request("GET", "/api/v1/me")

    assert [used.status, used_again.status, idle.status] == [200, 200, 401]


async def test_a_session_ends_after_its_lifetime_however_much_it_is_used(
    stack: GatewayStack,
) -> None:
    client = HttpClient(stack.gateway.http.port, {"Cookie": await cookie_of(stack)})
    statuses = []
    for _ in range(SESSION_LIFETIME // timedelta(hours=8)):
        statuses.append((await client.request("GET", "/api/v1/me")).status)
        stack.clock.advance(timedelta(hours=8).total_seconds())
    statuses.append((await client.request("GET", "/api/v1/me")).status)

    assert statuses == [200] * 21 + [401]
