"""Guarded requests to servers made by hand: what they get, and how much of an answer is read."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from parley.egress import AddressBlocked, Policy
from parley.egress.transport import (
    IDENTITY,
    Identity,
    ResponseEncoded,
    ResponseTooLarge,
    guarded_client,
)
from support.host.ports import free_port
from support.mcpgateway.servers import raw_server


@asynccontextmanager
async def client_of(port: int) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a guarded client that takes at most 98 bytes."""
    url = f"http://127.0.0.1:{port}"
    client = guarded_client(
        Policy().with_url(url), response_bytes_max=98, timeout=httpx2.Timeout(5)
    )
    client.base_url = url
    IDENTITY.set(Identity.at(url, {}))
    async with asyncio.timeout(5), client:
        yield client


async def test_cookies_of_one_request_are_not_sent_with_the_next() -> None:
    port = free_port()
    requests: list[bytes] = []

    def bake(request: bytes) -> bytes:
        requests.append(request.lower())
        return b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"

    async with raw_server(port, bake), client_of(port) as client:
        await client.get("/")
        await client.get("/")

    assert [b"\r\ncookie:" in request for request in requests] == [False, False]


async def test_a_response_that_is_too_long_is_not_read_to_its_end() -> None:
    port = free_port()
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + b"x" * 99

    async with raw_server(port, lambda _: response), client_of(port) as client:
        with pytest.raises(ResponseTooLarge):
            await client.get("/")


@pytest.mark.parametrize("encoding", [b"gzip", b"GZIP", b"identity, gzip", b"br"])
async def test_a_compressed_response_is_not_requested_and_not_unpacked(encoding: bytes) -> None:
    port = free_port()
    requests: list[bytes] = []
    # Fewer bytes than the limit, until they are unpacked.
    bomb = gzip.compress(b"x" * 10_000)

    def explode(request: bytes) -> bytes:
        requests.append(request.lower())
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n" % encoding
        return head + b"Content-Length: %d\r\n\r\n%s" % (len(bomb), bomb)

    async with raw_server(port, explode), client_of(port) as client:
        with pytest.raises(ResponseEncoded):
            await client.get("/", headers={"Accept-Encoding": "gzip"})

    (request,) = requests
    assert len(bomb) < 98
    assert request.count(b"accept-encoding:") == 1
    assert b"\r\naccept-encoding: identity\r\n" in request


@pytest.mark.parametrize(
    "headers",
    [b"".join(b"X-%d: a\r\n" % number for number in range(201)), b"X: " + b"a" * 65_536 + b"\r\n"],
    ids=["too many", "too large"],
)
async def test_a_response_with_too_many_or_too_large_headers_is_refused(headers: bytes) -> None:
    port = free_port()
    response = b"HTTP/1.1 200 OK\r\n" + headers + b"Content-Length: 0\r\n\r\n"

    async with raw_server(port, lambda _: response), client_of(port) as client:
        with pytest.raises(ResponseTooLarge):
            await client.get("/")


async def test_a_redirect_to_another_origin_gets_no_request_and_no_credential() -> None:
    port, elsewhere = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    location = f"Location: http://127.0.0.1:{elsewhere}/\r\n".encode()
    response = b"HTTP/1.1 307 Temporary Redirect\r\n" + location + b"Content-Length: 0\r\n\r\n"
    strayed: list[bytes] = []

    def stray(request: bytes) -> bytes:
        strayed.append(request)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    # Both places may be reached: what stops the second request is its origin.
    policy = Policy().with_url(url).with_url(f"http://127.0.0.1:{elsewhere}")
    async with (
        raw_server(port, lambda _: response),
        raw_server(elsewhere, stray),
        guarded_client(policy, response_bytes_max=98, timeout=httpx2.Timeout(5)) as client,
    ):
        IDENTITY.set(Identity.at(url, {"Authorization": "Bearer secret"}))
        with pytest.raises(AddressBlocked):
            await client.post(url, content=b"body", follow_redirects=True)

    assert strayed == []
