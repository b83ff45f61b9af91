"""Floods of requests over HTTP: one key, user or address is slowed down, and nobody else."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.http.limits.client_address import ProxyNetwork
from gateway.identity.engine.attempts import FIRST_OF_NETWORK, LOGIN
from parley.identity import ApiKey, Role
from support.gateway.browser import PASSWORD, invited
from support.gateway.stack import GatewayStack, gateway_stack
from support.gateway.users import client_with
from support.net.http_client import HttpClient, Reply

ME = "/api/v1/me"
WRONG_KEY = ApiKey.generate().reveal()
FLOOD = 60


@pytest.fixture
def limited(tmp_path: Path, identity_database: str) -> Any:
    @asynccontextmanager
    async def run(**settings: Any) -> AsyncIterator[tuple[GatewayStack, HttpClient]]:
        async with (
            asyncio.timeout(60),
            gateway_stack(tmp_path, identity_database, **settings) as stack,
        ):
            yield stack, await client_with(stack, identity_database, Role.MEMBER)

    return run


async def flood(client: HttpClient, count: int = FLOOD, address: str = "") -> Counter[int]:
    """Make requests all at once; return how often each status came."""
    headers = {"X-Forwarded-For": address} if address else {}
    async with asyncio.TaskGroup() as group:
        replies = [
            group.create_task(client.request("GET", ME, None, headers)) for _ in range(count)
        ]
    return Counter(each.result().status for each in replies)


async def test_a_flood_with_one_key_is_refused_and_others_do_not_notice(limited: Any) -> None:
    async with limited(key_requests_per_minute=20) as (stack, other):
        stack.clock.advance(60)
        assert await flood(stack.owner) == {200: 20, 429: FLOOD - 20}
        refused = await stack.owner.request("GET", ME)
        assert (refused.status, refused.json()["code"]) == (429, "TOO_MANY_REQUESTS")
        assert refused.headers["retry-after"] == "3"
        assert '"key";q=20;w=60' in refused.headers["ratelimit-policy"]
        assert '"key";r=0;t=60' in refused.headers["ratelimit"]
        assert await flood(other, 20) == {200: 20}
        stack.clock.advance(3)
        assert await flood(stack.owner, 2) == {200: 1, 429: 1}


async def test_a_user_has_one_quota_for_all_keys(limited: Any) -> None:
    async with limited(user_requests_per_minute=20, key_requests_per_minute=0) as (stack, other):
        second = await _second_key(stack)
        stack.clock.advance(60)
        both = await flood(stack.owner, 15) + await flood(second, 15)
        assert both == {200: 20, 429: 10}
        assert await flood(other, 5) == {200: 5}


async def test_guessing_keys_is_limited_by_address_before_they_are_checked(limited: Any) -> None:
    proxies = (ProxyNetwork.parse("127.0.0.1"),)
    async with limited(address_requests_per_minute=10, trusted_proxies=proxies) as (stack, other):
        wrong = HttpClient(stack.gateway.http.port, {"Authorization": f"Bearer {WRONG_KEY}"})
        guesses = await flood(wrong, address="192.0.2.66")
        assert guesses == {401: 10, 429: FLOOD - 10}
        from_elsewhere = await flood(other, 5, "192.0.2.7")
        assert from_elsewhere == {200: 5}


async def test_every_answer_says_what_is_left(limited: Any) -> None:
    async with limited(
        address_requests_per_minute=100, user_requests_per_minute=50, key_requests_per_minute=40
    ) as (stack, _):
        stack.clock.advance(60)
        reply = await stack.owner.request("GET", ME)
        assert _rates(reply) == (
            '"address";q=100;w=60, "user";q=50;w=60, "key";q=40;w=60',
            '"address";r=99;t=1, "user";r=49;t=2, "key";r=39;t=2',
        )
        missing = await stack.owner.request("GET", "/api/v1/chats/nothing")
        assert missing.status == 404
        assert _rates(missing)[1].startswith('"address";r=98;')
        page = await stack.anonymous.request("GET", "/login")
        assert _rates(page)[0] == '"address";q=100;w=60'


async def test_a_flood_of_wrong_passwords_keeps_nobody_out(limited: Any) -> None:
    proxies = (ProxyNetwork.parse("127.0.0.1"),)
    async with limited(trusted_proxies=proxies) as (stack, _):
        await invited(stack, "eve")

        async def sign_in(password: str, address: str) -> int:
            body = {"login": "eve", "password": password}
            headers = {"X-Forwarded-For": address}
            reply = await stack.anonymous.request("POST", "/api/v1/sign-in", body, headers)
            status: int = reply.status
            return status

        async with asyncio.TaskGroup() as group:
            guesses = [
                group.create_task(sign_in(f"some wrong words {each}", f"192.0.2.{each}"))
                for each in range(FLOOD)
            ]
        statuses = Counter(each.result() for each in guesses)
        assert statuses.keys() <= {401, 429, 503}
        assert statuses[401] <= LOGIN.attempts + FIRST_OF_NETWORK.attempts
        # From a network of her own she gets in while it goes on.
        assert await sign_in(PASSWORD, "203.0.113.5") == 200


async def _second_key(stack: GatewayStack) -> HttpClient:
    made = await stack.owner.request("POST", "/api/v1/me/api-keys", {"name": "second"})
    assert made.status == 201, made.body
    return HttpClient(stack.gateway.http.port, {"Authorization": f"Bearer {made.json()['key']}"})


def _rates(reply: Reply) -> tuple[str, str]:
    return reply.headers["ratelimit-policy"], reply.headers["ratelimit"]
