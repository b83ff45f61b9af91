"""Heads that name no server, or two, or are read otherwise by whoever is in between."""

import asyncio

import pytest

from support.gateway.stack import GatewayStack

HOST = "Host: localhost"


async def status_of(stack: GatewayStack, head: str) -> tuple[int, bytes]:
    """Send a head as it stands and return the status and the whole answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.gateway.http.port)
    writer.write(head.encode("latin-1"))
    async with asyncio.timeout(10):
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer += await reader.readexactly(length)
    writer.close()
    return int(answer.split()[1]), answer


def head(line: str, *headers: str) -> str:
    return "\r\n".join((line, *headers, "", ""))


@pytest.mark.parametrize(
    "sent",
    [
        head("GET /healthz HTTP/1.1", HOST, HOST),
        head("GET /healthz HTTP/1.1", HOST, "Host: evil.test"),
        head("GET /healthz HTTP/1.1"),
        head("GET /healthz HTTP/1.1", "Host: "),
        head("GET /healthz HTTP/1.1", "Host: evil.test@localhost"),
        head("GET /healthz HTTP/1.1", "Host: localhost@evil.test"),
        head("GET /healthz HTTP/1.1", "Host: localhost:80@evil.test"),
        head("GET /healthz HTTP/1.1", "Host: localhost:port"),
        head("GET /healthz HTTP/1.1", "Host: localhost, evil.test"),
        head("GET /healthz HTTP/1.1", "Host: localhost/evil"),
        head("GET /healthz HTTP/1.1", "Host: http://localhost"),
        head("GET /healthz HTTP/1.1", "Host: local host"),
        head("GET http://evil.test/healthz HTTP/1.1", HOST),
        head("GET http://localhost@evil.test/healthz HTTP/1.1", HOST),
        head("GET http://evil.test@localhost/healthz HTTP/1.1", HOST),
        head("GET http://localhost HTTP/1.1", HOST),
        head("GET ftp://localhost/healthz HTTP/1.1", HOST),
        head("GET * HTTP/1.1", HOST),
        head("GET healthz HTTP/1.1", HOST),
        head("CONNECT localhost:443 HTTP/1.1", HOST),
        head("GET /healthz HTTP/1.1", HOST, "Content-Length: 1", "Transfer-Encoding: chunked"),
        head("GET /healthz HTTP/1.1", HOST, "Transfer-Encoding: chunked", "Content-Length: 1"),
        head("GET /healthz HTTP/1.1", HOST, "Content-Length: 1", "Content-Length: 2"),
        head("GET /healthz HTTP/1.1", HOST, "Content-Length: 0", "Content-Length: 0"),
        head("GET /healthz HTTP/1.1", HOST, "Content-Length: -1"),
        head("GET /healthz HTTP/1.1", HOST, "Content-Length: +1"),
        head("GET /healthz HTTP/1.1", HOST, "Transfer-Encoding: gzip"),
        head("GET /healthz HTTP/1.1", HOST, "X-Odd : value"),
        head("GET /healthz HTTP/1.1", HOST, "X-Odd: a\rX-Other: b"),
        head("GET /healthz HTTP/1.1", HOST, "X-Odd: a\0b"),
        head("GET /healthz HTTP/1.1", HOST, "X-\0dd: ab"),
        head("GET /healthz HTTP/1.1", HOST, "X-Odd: a", " folded"),
        head("GET /healthz HTTP/1.1", " X-Odd: a", HOST),
        head("GET /healthz HTTP/1.1", HOST, ": nameless"),
        head("GET /health\0z HTTP/1.1", HOST),
        head("GET /healthz HTTP/2.0", HOST),
        head("GET /healthz HTTP/1.1", HOST).replace("\r\n", "\n"),
    ],
)
async def test_an_ambiguous_head_is_a_bad_request(stack: GatewayStack, sent: str) -> None:
    status, answer = await status_of(stack, sent)
    assert (status, b'"code":"BAD_REQUEST"' in answer) == (400, True)


@pytest.mark.parametrize(
    "sent",
    [
        head("GET /healthz HTTP/1.1", HOST),
        head("GET /healthz HTTP/1.1", "Host: LOCALHOST:8080"),
        head("GET /healthz HTTP/1.1", "Host: [::1]:8080"),
        head("GET http://localhost/healthz HTTP/1.1", HOST),
        head("GET http://LocalHost:80/healthz HTTP/1.1", "Host: localhost:80"),
        head("GET //evil.test/../healthz HTTP/1.1", HOST),
    ],
)
async def test_a_head_that_names_one_server_is_taken(stack: GatewayStack, sent: str) -> None:
    status, _ = await status_of(stack, sent)
    assert status == (404 if "evil" in sent else 200)


async def test_a_socket_of_two_hosts_is_refused_too(stack: GatewayStack) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    sent = head("GET /healthz HTTP/1.1", HOST, "Host: evil.test", *upgrade)
    status, _ = await status_of(stack, sent)
    assert status == 400
