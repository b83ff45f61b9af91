"""A whole stack behind the real nginx with the configuration of this repository, over TLS."""

import asyncio
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from parley.cli.api.server import Server
from parley.cli.api.websocket import WebSocket
from support.host.ports import free_port
from support.net.nginx import Nginx, nginx_program, running_nginx
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

STREAMS, STREAMS_FULL_SIZE = 300, 5_000
UPLOAD_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def nginx(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Nginx, LocalStack]]:
    nginx_program()
    port = free_port()
    stack = LocalStack.at(tmp_path_factory.mktemp("home"), GATEWAY_TRUSTED_PROXIES="127.0.0.1")
    started = stack.up("--public-url", f"https://localhost:{port}")
    assert started.returncode == 0, started.stdout + started.stderr
    try:
        with running_nginx(tmp_path_factory.mktemp("nginx"), stack.http, port=port) as running:
            yield running, stack
    finally:
        stack.parley("down")


def key_of(stack: LocalStack) -> str:
    return stack.home.api_key_file.read_text().strip()


def ask(nginx: Nginx, stack: LocalStack, path: str, *arguments: str) -> Any:
    """Ask with curl, and return the JSON that is answered."""
    answered = nginx.curl(
        "-H", f"Authorization: Bearer {key_of(stack)}", *arguments, f"{nginx.url}/api/v1{path}"
    )
    assert answered.returncode == 0, answered.stderr
    return json.loads(answered.stdout)


def new_chat(nginx: Nginx, stack: LocalStack, text: str) -> str:
    body = json.dumps({"content": [{"type": "text", "text": text}]})
    chat = ask(nginx, stack, "/chats", "-H", "Content-Type: application/json", "-d", body)
    return str(chat["id"])


async def opened_stream(
    nginx: Nginx, context: ssl.SSLContext, stack: LocalStack, path: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream of events, and return it after its first line."""
    reader, writer = await asyncio.open_connection(
        "localhost", nginx.port, ssl=context, limit=4 * 1024 * 1024
    )
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: localhost:{nginx.port}\r\n"
        f"Authorization: Bearer {key_of(stack)}\r\n\r\n".encode()
    )
    status = await reader.readline()
    assert b" 200 " in status, status
    await reader.readuntil(b"\r\n\r\n")
    await reader.readuntil(b": connected")
    return reader, writer


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


async def test_events_arrive_as_they_happen(nginx: tuple[Nginx, LocalStack]) -> None:
    proxy, stack = nginx
    chat_id = new_chat(proxy, stack, "run: sleep 3; echo over")
    path = f"/api/v1/chats/{chat_id}/events"
    async with asyncio.timeout(60):
        reader, writer = await opened_stream(proxy, proxy.context(), stack, path)
        began, arrivals = time.monotonic(), []
        while chunk := await reader.read(65536):
            arrivals.append(time.monotonic() - began)
            if b'"waiting"' in chunk:
                break
        await hang_up(writer)
    # Nothing is kept back until the end.
    assert len(arrivals) > 1
    assert arrivals[-1] - arrivals[0] > 1


async def test_many_streams_are_open_at_once(
    nginx: tuple[Nginx, LocalStack], pytestconfig: pytest.Config
) -> None:
    proxy, stack = nginx
    count = STREAMS_FULL_SIZE if pytestconfig.getoption("--full-size") else STREAMS
    chat_id = new_chat(proxy, stack, "hello")
    context, path = proxy.context(), f"/api/v1/chats/{chat_id}/events"
    gate = asyncio.Semaphore(50)

    async def read_one(stack_of_writers: AsyncExitStack) -> asyncio.StreamReader:
        async with gate:
            reader, writer = await opened_stream(proxy, context, stack, path)
        stack_of_writers.push_async_callback(hang_up, writer)
        return reader

    async with asyncio.timeout(300), AsyncExitStack() as writers:
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(read_one(writers)) for _ in range(count)]
        body = json.dumps({"content": [{"type": "text", "text": "to all of you"}]})
        await asyncio.to_thread(
            ask, proxy, stack, f"/chats/{chat_id}/messages",
            "-H", "Content-Type: application/json", "-d", body,
        )  # fmt: skip
        async with asyncio.TaskGroup() as tasks:
            for each in started:
                tasks.create_task(each.result().readuntil(b"to all of you"))


def test_a_browser_and_a_program_use_http_2(nginx: tuple[Nginx, LocalStack]) -> None:
    proxy, stack = nginx
    answered = proxy.curl("--http2", "-D", "-", f"{proxy.url}/healthz")
    assert answered.stdout.startswith("HTTP/2 200"), answered.stdout + answered.stderr
    assert "strict-transport-security: max-age=31536000" in answered.stdout
    # A stream in HTTP/2 is not kept back either.
    chat_id = new_chat(proxy, stack, "hello")
    streamed = proxy.curl(
        "--http2", "--max-time", "5", "-H", f"Authorization: Bearer {key_of(stack)}",
        f"{proxy.url}/api/v1/chats/{chat_id}/events",
    )  # fmt: skip
    assert ": connected" in streamed.stdout


def test_a_terminal_works_through_the_proxy(
    nginx: tuple[Nginx, LocalStack], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, stack = nginx
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.authority_file))
    chat_id = new_chat(proxy, stack, "run: true")
    body = json.dumps(
        {"command": "exec sh", "terminal": {"rows": 24, "columns": 80}, "background": True}
    )
    started = ask(
        proxy, stack, f"/chats/{chat_id}/processes", "-H", "Content-Type: application/json",
        "-d", body,
    )  # fmt: skip
    path = f"/api/v1/chats/{chat_id}/processes/{started['id']}/terminal"
    with closing(WebSocket.opened(Server(proxy.url, key_of(stack)), path)) as connection:
        connection.send(b"echo $((6*7))\n")
        heard = b""
        deadline = time.monotonic() + 30
        while b"42" not in heard and time.monotonic() < deadline:
            for each in connection.receive():
                heard += each if isinstance(each, bytes) else b""
    assert b"42" in heard


def test_an_upload_arrives_whole(nginx: tuple[Nginx, LocalStack], tmp_path: Path) -> None:
    proxy, stack = nginx
    file = tmp_path / "upload.txt"
    file.write_bytes(b"0123456789abcde\n" * (UPLOAD_BYTES // 16))
    stored = ask(
        proxy, stack, "/files?name=upload.txt", "-H", "Content-Type: text/plain",
        "--data-binary", f"@{file}",
    )  # fmt: skip
    read = tmp_path / "read.txt"
    proxy.curl(
        "-H", f"Authorization: Bearer {key_of(stack)}", "-o", str(read),
        f"{proxy.url}/api/v1/files/{stored['id']}",
    )  # fmt: skip
    assert read.read_bytes() == file.read_bytes()


def test_clients_cannot_claim_another_address_host_or_scheme(
    nginx: tuple[Nginx, LocalStack],
) -> None:
    proxy, _ = nginx
    answered = proxy.curl(
        "-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Forwarded-Host: evil.example",
        "-H", "X-Forwarded-Proto: http", "-H", "Forwarded: for=203.0.113.9;host=evil.example",
        f"{proxy.url}/connection",
    )  # fmt: skip
    seen = json.loads(answered.stdout)
    assert (seen["address"], seen["host"], seen["scheme"], seen["ignored_headers"]) == (
        "127.0.0.1",
        f"localhost:{proxy.port}",
        "https",
        [],
    )


def test_other_names_and_plain_http_do_not_get_in(nginx: tuple[Nginx, LocalStack]) -> None:
    proxy, _ = nginx
    other = proxy.curl(
        "--resolve", f"other.example:{proxy.port}:127.0.0.1", "--insecure",
        f"https://other.example:{proxy.port}/healthz",
    )  # fmt: skip
    assert other.returncode != 0  # No handshake.
    fronted = proxy.curl("-H", "Host: evil.example", f"{proxy.url}/healthz")
    assert "ok" not in fronted.stdout
    plain = proxy.curl(
        "-o", "/dev/null", "-w", "%{http_code}", f"http://localhost:{proxy.http_port}/"
    )
    assert plain.stdout == "308"


def test_floods_of_headers_are_refused_and_others_go_on(nginx: tuple[Nginx, LocalStack]) -> None:
    proxy, _ = nginx
    many = [word for number in range(400) for word in ("-H", f"X-Flood-{number}: {'x' * 200}")]
    huge = ["-H", f"X-Flood: {'x' * 40_000}"]
    for flood in (many, huge):
        for version in ("--http1.1", "--http2"):
            refused = proxy.curl(
                version, *flood, "-o", "/dev/null", "-w", "%{http_code}", f"{proxy.url}/healthz"
            )
            assert refused.stdout in ("400", "431", "000"), (version, refused.stdout)
    assert proxy.curl(f"{proxy.url}/healthz").stdout == '{"status":"ok"}'
