"""Guesses of passwords, of few networks and of many: whom they slow down, and what they tell."""

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.http.limits.client_address import ProxyNetwork
from gateway.identity.engine.attempts import (
    DEVICE,
    FIRST_OF_NETWORK,
    FIRST_OF_NETWORKS,
    LOGIN,
    LOGIN_AND_ADDRESS,
    Attempts,
    network_of,
    sign_in_charges,
)
from gateway.identity.errors import TooManyAttempts
from gateway.identity.store.attempts import CHARGE, AttemptStore, Charge
from parley.clock import FakeClock
from parley.postgres import Database
from support.gateway.browser import PASSWORD, Browser, invited
from support.gateway.stack import GatewayStack, gateway_stack
from support.net.http_client import Reply

SIGN_IN = "/api/v1/sign-in"
WRONG = "some entirely wrong words"
PROBES = 6


async def sign_in(
    stack: GatewayStack, login: str, password: str, address: str = "127.0.0.1"
) -> Reply:
    body = {"login": login, "password": password}
    headers = {"X-Forwarded-For": address}
    return await stack.anonymous.request("POST", SIGN_IN, body, headers)


@asynccontextmanager
async def attacked(
    directory: Path, database_url: str, *, networks: int
) -> AsyncIterator[tuple[GatewayStack, Browser, int]]:
    """Guess at a user from so many networks until nothing is accepted; give how much was.

    The guesses are counted as the gateway counts them. Hashing them would take a minute.
    """
    proxies = (ProxyNetwork.parse("127.0.0.1"),)
    async with (
        gateway_stack(directory, database_url, trusted_proxies=proxies) as stack,
        Database.open(database_url, application_name="test", connections_max=2) as database,
    ):
        browser = await invited(stack)
        attempts, accepted, before = Attempts(AttemptStore(database), stack.clock), 0, -1
        for host in itertools.count():
            if accepted == before:
                break
            before = accepted
            for network in range(networks):
                choices = sign_in_charges("ada", f"10.0.{network}.{host}", None)
                with suppress(TooManyAttempts):
                    await attempts.count(*choices)
                    accepted += 1
        yield stack, browser, accepted


async def test_a_login_that_is_guessed_goes_on_to_accept_people_from_elsewhere(
    tmp_path: Path, identity_database: str
) -> None:
    async with attacked(tmp_path, identity_database, networks=2) as (stack, _, accepted):
        attacker = await sign_in(stack, "ada", WRONG, "10.0.0.255")
        new_browser = await sign_in(stack, "ada", PASSWORD, "198.51.100.1")
        mistyped = [
            (await sign_in(stack, "ada", WRONG, "203.0.113.7")).status
            for _ in range(FIRST_OF_NETWORK.attempts - 1)
        ]
        then_right = await sign_in(stack, "ada", PASSWORD, "203.0.113.7")

    assert accepted == LOGIN.attempts + 2 * FIRST_OF_NETWORK.attempts
    assert (attacker.status, new_browser.status) == (429, 200)
    assert (mistyped, then_right.status) == ([401, 401], 200)


async def test_a_known_browser_is_not_slowed_down_by_attempts_of_others(
    tmp_path: Path, identity_database: str
) -> None:
    async with attacked(tmp_path, identity_database, networks=12) as (stack, browser, accepted):
        new_browser = await sign_in(stack, "ada", PASSWORD, "198.51.100.1")
        body = {"login": "ada", "password": PASSWORD}
        known_browser = await browser.call("POST", SIGN_IN, body)
        own = [
            (await browser.call("POST", SIGN_IN, body | {"password": WRONG})).status
            for _ in range(DEVICE.attempts + 1)
        ]
        stack.clock.advance(FIRST_OF_NETWORKS.refill_s)
        later = await sign_in(stack, "ada", PASSWORD, "198.51.100.1")

    assert accepted == LOGIN.attempts + FIRST_OF_NETWORKS.attempts
    assert (new_browser.status, known_browser.status, later.status) == (429, 200, 200)
    assert own == [401] * DEVICE.attempts + [429]


async def test_networks_that_go_on_guessing_keep_new_browsers_out_for_the_time_that_is_documented(
    identity_database: str,
) -> None:
    networks, clock = 12, FakeClock()
    async with Database.open(
        identity_database, application_name="test", connections_max=4
    ) as database:
        attempts = Attempts(AttemptStore(database), clock)

        async def is_accepted(address: str) -> bool:
            with suppress(TooManyAttempts):
                await attempts.count(*sign_in_charges("ada", address, None))
                return True
            return False

        hosts = (f"10.0.{place % networks}.{place // networks}" for place in itertools.count())
        for address in itertools.islice(hosts, LOGIN.attempts + FIRST_OF_NETWORKS.attempts):
            assert await is_accepted(address)
        kept_out_s = 0
        while not await is_accepted("198.51.100.1"):
            clock.advance(1)
            kept_out_s += 1
            for address in itertools.islice(hosts, networks):
                await is_accepted(address)

    assert kept_out_s == math.ceil((3 * networks - 30) / (1 - networks / 1200))


async def test_an_attempt_does_not_wait_for_what_another_counts_to_forget_it(
    identity_database: str,
) -> None:
    now, refill = datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=1)
    first, second, old = (
        Charge(name, refill, 5 * refill) for name in (b"1" * 32, b"2" * 32, b"3" * 32)
    )
    async with Database.open(
        identity_database, application_name="test", connections_max=4
    ) as database:
        store = AttemptStore(database)
        assert await store.charge((first, second, old), now - timedelta(hours=1)) is None
        async with (
            asyncio.timeout(20),
            database.pool.acquire() as connection,
            connection.transaction(),
        ):
            await connection.fetchrow(CHARGE, first.subject, now, refill, first.burst)
            # It would wait for the first subject, and this transaction then for the second.
            assert await store.charge((second,), now) is None
            await connection.fetchrow(CHARGE, second.subject, now, refill, second.burst)
        subjects = await database.pool.fetch("SELECT subject FROM identity.sign_in_attempts")

    assert {row["subject"] for row in subjects} == {first.subject, second.subject}


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("unknown", "unknown"),
    ],
)
def test_addresses_of_one_provider_are_one_network(address: str, network: str) -> None:
    assert network_of(address) == network


async def test_an_unknown_login_is_refused_after_the_same_time_as_a_known_one(
    stack: GatewayStack,
) -> None:
    await invited(stack)
    taken_ms: dict[str, list[float]] = {"ada": [], "nobody-of-this-name": []}
    for _ in range(PROBES):
        for login, taken in taken_ms.items():
            began = time.perf_counter()
            reply = await sign_in(stack, login, WRONG)
            taken.append((time.perf_counter() - began) * 1000)
            assert reply.status == 401
        stack.clock.advance(LOGIN_AND_ADDRESS.refill_s)
    # The least, which other work on the machine changes least.
    least_ms = sorted(min(taken) for taken in taken_ms.values())
    print("G7: " + ", ".join(f"{login} {min(taken):.1f} ms" for login, taken in taken_ms.items()))

    # A refusal without a hash takes a tenth.
    assert least_ms[1] < 2 * least_ms[0]
