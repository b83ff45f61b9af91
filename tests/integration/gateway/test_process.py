import asyncio
import signal
import socket
import sys
from asyncio.subprocess import Process
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.http.addresses import HttpAddress
from parley.clock import SystemClock
from parley.identity import ApiKey
from parley.process import OpenFiles
from parley.telemetry import InMemoryTelemetry
from support.gateway.fake_chatd import FakeChatd
from support.gateway.fake_chatd_server import serving
from support.gateway.processes import environment_of, http_port_of, started
from support.gateway.raw_connections import Connection, code_of
from support.gateway.stack import make_settings
from support.net.http_client import HttpClient, SentEvent

# Starts a gateway that may have only so many files open.
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
os.execv(sys.executable, [sys.executable, "-m", "gateway"])
"""
# Starts a gateway whose listening socket ends with a signal, as `ss --kill` ends one; not before
# the start is complete, which lets it listen once more.
BREAKABLE = """
import runpy, signal, socket
from gateway.http import server

on_tick, requested = server._Server.on_tick, []
signal.signal(signal.SIGUSR1, lambda *_: requested.append(True))
async def break_on_tick(self, counter):
    while requested:
        requested.pop()
        self._listening.shutdown(socket.SHUT_RDWR)
    return await on_tick(self, counter)

server._Server.on_tick = break_on_tick
runpy.run_module("gateway", run_name="__main__")
"""
#: Waits for its body once the gateway has begun with it. Each is of another client of a proxy.
BEGUN = (
    "POST /api/v1/sign-in HTTP/1.1\r\nHost: parley.test\r\nX-Forwarded-For: 2001:db8:{:x}::1\r\n"
    "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
)


def open_files_of(process: Process) -> int:
    return len([*Path(f"/proc/{process.pid}/fd").iterdir()])


async def http_problem_of(variables: dict[str, str]) -> tuple[int | None, str]:
    async with asyncio.timeout(20), started(variables) as process:
        _, said = await process.communicate()
        return process.returncode, said.decode()


async def test_a_gateway_serves_until_it_is_told_to_stop_and_says_bye(
    tmp_path: Path, identity_database: str
) -> None:
    key = ApiKey.generate()
    settings = make_settings(tmp_path, identity_database, key)
    chatd = FakeChatd()
    async with (
        asyncio.timeout(30),
        serving(
            chatd,
            tmp_path / "chatd.sock",
            trust_file=settings.trust_file,
            clock=SystemClock(),
            telemetry=InMemoryTelemetry("chatd").telemetry,
        ),
        started(environment_of(settings, "127.0.0.1:0")) as process,
    ):
        port = await http_port_of(process)
        client = HttpClient(port, {"Authorization": f"Bearer {key.reveal()}"})
        ready = await client.request("GET", "/readyz")
        body = {"content": [{"type": "text", "text": "hello"}]}
        chat_id = (await client.request("POST", "/api/v1/chats", body)).json()["id"]
        async with client.stream(f"/api/v1/chats/{chat_id}/events") as stream:
            await chatd.subscriptions.get()
            process.send_signal(signal.SIGTERM)
            last, end = await stream.event(), await stream.event()
        code = await process.wait()

    assert ready.status == 200
    assert (last, end) == (SentEvent("bye", {"type": "bye", "chat_id": chat_id}), None)
    assert code == 0


async def test_a_wrong_key_is_a_problem_of_configuration(
    tmp_path: Path, identity_database: str
) -> None:
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    variables = environment_of(settings, "127.0.0.1:0") | {"GATEWAY_OWNER_API_KEY": "not-a-key"}

    code, said = await http_problem_of(variables)

    assert code == 2
    assert "GATEWAY_OWNER_API_KEY is not an API key" in said
    assert "Traceback" not in said


async def test_a_port_in_use_is_a_problem_of_configuration(
    tmp_path: Path, identity_database: str
) -> None:
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        code, said = await http_problem_of(environment_of(settings, address))

    assert code == 2
    assert f"cannot serve HTTP on {address}" in said
    assert "Traceback" not in said


async def test_a_listening_socket_that_fails_ends_the_gateway(
    tmp_path: Path, identity_database: str
) -> None:
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    variables = environment_of(settings, "127.0.0.1:0")
    async with asyncio.timeout(60), started(variables, "-c", BREAKABLE) as process:
        port = await http_port_of(process)
        process.send_signal(signal.SIGUSR1)
        _, said = await process.communicate()
    assert process.returncode == 1
    assert f"no connection is accepted on 127.0.0.1:{port} any more" in said.decode()


async def test_a_missing_trust_file_is_a_problem_of_configuration(
    tmp_path: Path, identity_database: str
) -> None:
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    settings.trust_file.unlink()

    code, said = await http_problem_of(environment_of(settings, "127.0.0.1:0"))

    assert code == 2
    assert "trust file" in said


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_connections_are_refused_before_a_gateway_has_no_open_files_left(
    tmp_path: Path, identity_database: str
) -> None:
    files = OpenFiles(limit=600, limit_at_start=600)
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    variables = environment_of(settings, "127.0.0.1:0") | {
        "GATEWAY_HTTP_CONNECTIONS_MAX": "4096",
        "GATEWAY_TRUSTED_PROXIES": "127.0.0.1",
    }
    async with (
        asyncio.timeout(60),
        started(variables, "-c", LIMITED, str(files.limit)) as process,
        AsyncExitStack() as stack,
    ):
        address = HttpAddress("127.0.0.1", await http_port_of(process))

        async def begun(number: int) -> Connection:
            connection = Connection(address)
            await connection.connect()
            stack.push_async_callback(connection.close)
            await connection.send(BEGUN.format(number).encode())
            return connection

        taken = [await begun(number) for number in range(files.connections_max)]
        assert {await each.head() for each in taken} == {"http/1.1 100 continue\r\n\r\n"}
        # Together with those that are taken, more than it may have files open.
        refused = [await (await begun(number)).answer() for number in range(350)]
        has_open = open_files_of(process)
        await taken[0].send(b"{}")
        status, _ = await taken[0].answer()
        await stack.aclose()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = (await process.stderr.read()).decode()
    assert {code_of(each) for each in refused} == {(503, "SERVER_BUSY")}
    assert has_open < files.limit
    assert status == 422
    assert "EMFILE" not in said
    assert "Too many open files" not in said
