"""What one user may have open at a gateway, and what is left for others meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.http.limits.client_address import ProxyNetwork
from parley.identity import Role
from support.gateway.chats import HELLO, NO_CHAT, new_chat
from support.gateway.stack import GatewayStack, gateway_stack
from support.gateway.users import client_with
from support.net.http_client import HttpClient

PROCESSES = f"/api/v1/chats/{NO_CHAT}/processes"
OUTPUT = f"{PROCESSES}/00000000-0000-0000-0000-0000000000b1/output?wait=300"
GIT_EVENTS = f"/api/v1/chats/{NO_CHAT}/git/events"
START = {"command": "make"}
#: More than a connection between two services carries.
WAITING = 300


class Bounded:
    """A gateway with other bounds, its owner, and another user."""

    def __init__(self, stack: GatewayStack, other: HttpClient) -> None:
        self.stack = stack
        self.owner = stack.owner
        self.other = other


@pytest.fixture
def bounded(tmp_path: Path, identity_database: str) -> Any:
    @asynccontextmanager
    async def run(**settings: Any) -> AsyncIterator[Bounded]:
        async with (
            asyncio.timeout(60),
            gateway_stack(tmp_path, identity_database, **settings) as stack,
        ):
            yield Bounded(stack, await client_with(stack, identity_database, Role.MEMBER))

    return run


@asynccontextmanager
async def asking(
    client: HttpClient, count: int, method: str, path: str, body: Any = None
) -> AsyncIterator[None]:
    """Make requests, and hang up in the end without having read an answer to any."""
    async with AsyncExitStack() as clients:
        for _ in range(count):
            await clients.enter_async_context(client.asking(method, path, body))
        yield


@pytest.mark.parametrize(
    ("path", "method"),
    [(OUTPUT, "WaitWorkspaceOutput"), (GIT_EVENTS, "WatchWorkspaceGit")],
    ids=["output", "git"],
)
async def test_waiting_requests_stop_nobody(bounded: Any, path: str, method: str) -> None:
    async with bounded(user_long_running_requests_max=1000) as at:
        held = at.stack.chatd.hold(method)
        async with asking(at.owner, WAITING, "GET", path):
            await held.until_came(WAITING)
            for client in (at.other, at.owner):
                created = await client.request("POST", "/api/v1/chats", HELLO)
                assert created.status == 201


async def test_one_user_may_wait_so_often_and_others_still_can(bounded: Any) -> None:
    async with bounded(user_long_running_requests_max=3) as at:
        held = at.stack.chatd.hold("WaitWorkspaceOutput")
        async with asking(at.owner, 3, "GET", OUTPUT):
            await held.until_came(3)
            refused = await at.owner.request("GET", OUTPUT)
            async with at.other.asking("GET", OUTPUT):
                await held.until_came(4)
            brief = await at.owner.request("GET", "/api/v1/chats")
        document = refused.json()
        assert (refused.status, document["code"]) == (429, "TOO_MANY_LONG_RUNNING_REQUESTS")
        assert (refused.headers["retry-after"], document["retryable"]) == ("2", True)
        assert brief.status == 200


async def test_one_user_may_have_so_many_streams_and_others_still_can(bounded: Any) -> None:
    async with bounded(user_requests_max=3) as at, AsyncExitStack() as streams:
        path = f"/api/v1/chats/{await new_chat(at.stack)}/events"
        for _ in range(3):
            stream = await streams.enter_async_context(at.owner.stream(path))
            assert stream.reply.status == 200
        refused = await at.owner.request("GET", path)
        feed = await streams.enter_async_context(at.other.stream("/api/v1/events"))
        assert (refused.status, refused.json()["code"]) == (429, "TOO_MANY_REQUESTS")
        assert "retry-after" in refused.headers
        assert feed.reply.status == 200


async def test_a_stream_that_ended_makes_room_for_another(bounded: Any) -> None:
    async with bounded(user_requests_max=2) as at:
        path = f"/api/v1/chats/{await new_chat(at.stack)}/events"
        for _ in range(4):
            async with at.owner.stream(path) as stream:
                assert stream.reply.status == 200
                subscription = await at.stack.chatd.subscriptions.get()
            await subscription.ended.wait()


async def test_abandoned_writes_of_one_user_do_not_pile_up(bounded: Any) -> None:
    async with bounded(user_calls_max=2) as at:
        held = at.stack.chatd.hold("StartWorkspaceProcess")
        async with asking(at.owner, 20, "POST", PROCESSES, START):
            await held.until_came(2)
            # Whoever asks now is behind all of them.
            started = [await at.other.request("POST", "/api/v1/chats", HELLO) for _ in range(5)]
            carried_out = held.count
        held.released.set()
        after = await at.owner.request("GET", "/api/v1/chats")
    assert ({each.status for each in started}, carried_out) == ({201}, 2)
    assert after.status == 200


async def test_the_address_that_a_trusted_proxy_tells_has_its_own_bound(bounded: Any) -> None:
    proxies = (ProxyNetwork.parse("127.0.0.0/8"),)
    async with (
        bounded(trusted_proxies=proxies, address_connections_max=2) as at,
        AsyncExitStack() as streams,
    ):
        path = f"/api/v1/chats/{await new_chat(at.stack)}/events"
        near, far = ({"X-Forwarded-For": f"203.0.113.{host}"} for host in (1, 2))
        for _ in range(2):
            await streams.enter_async_context(at.owner.stream(path, near))
        refused = await at.owner.request("GET", path, headers=near)
        taken = await streams.enter_async_context(at.owner.stream(path, far))
        assert (refused.status, taken.reply.status) == (429, 200)


async def test_an_address_that_somebody_else_tells_is_ignored(bounded: Any) -> None:
    async with bounded(address_connections_max=2) as at, AsyncExitStack() as streams:
        path = f"/api/v1/chats/{await new_chat(at.stack)}/events"
        for host in (1, 2):
            told = {"X-Forwarded-For": f"203.0.113.{host}"}
            await streams.enter_async_context(at.owner.stream(path, told))
        refused = await at.owner.request("GET", path, headers={"X-Forwarded-For": "203.0.113.3"})
        assert (refused.status, refused.json()["code"]) == (429, "TOO_MANY_CONNECTIONS")
