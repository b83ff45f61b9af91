import asyncio
import signal
import socket
from pathlib import Path

from parley.clock import SystemClock
from parley.identity import ApiKey
from parley.telemetry import InMemoryTelemetry
from support.gateway.fake_chatd import FakeChatd
from support.gateway.fake_chatd_server import serving
from support.gateway.processes import environment_of, http_port_of, started
from support.gateway.stack import make_settings
from support.net.http_client import HttpClient, SentEvent


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


async def test_a_missing_trust_file_is_a_problem_of_configuration(
    tmp_path: Path, identity_database: str
) -> None:
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    settings.trust_file.unlink()

    code, said = await http_problem_of(environment_of(settings, "127.0.0.1:0"))

    assert code == 2
    assert "trust file" in said
