"""Single guarded requests: where they go, and what of an answer is kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from parley.egress import GuardedSender, Policy, SendFailed
from support.host.ports import free_port
from support.mcpgateway.servers import raw_server

METADATA = "169.254.169.254"


@asynccontextmanager
async def sender_to(port: int) -> AsyncIterator[GuardedSender]:
    policy = Policy.parse(f"127.0.0.1:{port}")
    async with (
        asyncio.timeout(30),
        GuardedSender.open(policy, answer_bytes_max=98, request_s_max=5) as sender,
    ):
        yield sender


async def test_an_answer_is_returned_with_its_status_and_headers() -> None:
    port = free_port()
    seen: list[bytes] = []

    def answer(request: bytes) -> bytes:
        seen.append(request)
        return b"HTTP/1.1 202 Accepted\r\nX-Said: yes\r\nContent-Length: 2\r\n\r\nok"

    async with raw_server(port, answer), sender_to(port) as sender:
        got = await sender.send(
            "POST", f"http://127.0.0.1:{port}/hook", {"X-Signature": "abc"}, b"body"
        )

    assert (got.status, got.content, got.headers["x-said"]) == (202, b"ok", "yes")
    (request,) = seen
    assert b"\r\nx-signature: abc\r\n" in request.lower()
    assert request.endswith(b"\r\n\r\nbody")


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    port = free_port()
    count = 0

    def answer(_: bytes) -> bytes:
        nonlocal count
        count += 1
        return b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /on\r\nContent-Length: 0\r\n\r\n"

    async with raw_server(port, answer), sender_to(port) as sender:
        got = await sender.send("POST", f"http://127.0.0.1:{port}/", {}, b"body")

    assert (got.status, count) == (307, 1)


@pytest.mark.parametrize("kind", [b"text/plain", b"text/event-stream"])
async def test_an_answer_that_is_too_long_is_refused(kind: bytes) -> None:
    port = free_port()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nContent-Length: 99\r\n\r\n"

    async with raw_server(port, lambda _: head + b"x" * 99), sender_to(port) as sender:
        with pytest.raises(SendFailed) as caught:
            await sender.send("GET", f"http://127.0.0.1:{port}/", {})

    assert caught.value.may_have_arrived


async def test_a_compressed_answer_is_not_unpacked() -> None:
    port = free_port()
    response = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbomb"

    async with raw_server(port, lambda _: response), sender_to(port) as sender:
        got = await sender.send("GET", f"http://127.0.0.1:{port}/", {})

    assert got.content == b""


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example/", "https://user@a.example/", "http://a.example/", "https://[", "nothing"],
)
async def test_what_must_not_be_sent_is_refused_before_it_leaves(url: str) -> None:
    async with GuardedSender.open(Policy(), answer_bytes_max=1, request_s_max=5) as sender:
        with pytest.raises(SendFailed) as caught:
            await sender.send("GET", url, {})

    assert not caught.value.may_have_arrived


async def test_a_name_whose_address_changes_is_connected_to_only_at_a_checked_address() -> None:
    port = free_port()
    answers = [("127.0.0.1",), (METADATA,)]
    greetings: list[bytes] = []

    async def resolve(_host: str, _port: int) -> tuple[str, ...]:
        return answers.pop(0)

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greetings.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", port)
    async with (
        asyncio.timeout(30),
        server,
        GuardedSender.open(
            Policy.parse("127.0.0.0/8"), answer_bytes_max=98, request_s_max=5, resolve=resolve
        ) as sender,
    ):
        url = f"https://rebinding.example:{port}/"
        with pytest.raises(SendFailed):
            await sender.send("GET", url, {})
        # One answer of the resolver is enough for a connection: it is the one that was checked.
        assert answers == [(METADATA,)]
        with pytest.raises(SendFailed, match="not a public address"):
            await sender.send("GET", url, {})

    (greeting,) = greetings
    assert b"rebinding.example" in greeting


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
async def test_a_host_with_a_label_that_is_no_label_has_no_answer(host: str) -> None:
    async with sender_to(443) as sender:
        with pytest.raises(SendFailed, match="cannot be resolved: it is no host name"):
            await sender.send("POST", f"https://{host}/1", {}, b"body")
