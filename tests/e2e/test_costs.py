"""What turns cost that did not come to their end, and how dead providers are told, over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import psutil
import pytest
import pytest_asyncio

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.host.ports import free_port
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CHATS = "/api/v1/chats"
WAIT_S_MAX = 60.0
PRICES = {"input": 3, "output": 15}
# A short lease, so that a crash is noticed soon, and little patience with a dead provider.
ENVIRONMENT = {
    "CHATD_LEASE_S": "6",
    "CHATD_LEASE_RENEW_S": "1",
    "CHATD_MODEL_UNREACHABLE_MAX_S": "2",
    "CHATD_MODEL_BACKOFF_FIRST_S": "0.2",
}


IS_STORED = "SELECT EXISTS (SELECT 1 FROM chat.open_model_calls WHERE chat_id = $1)"


@dataclass(frozen=True, slots=True)
class Installation:
    """A stack with one model that is slow and one whose provider does not run."""

    stack: LocalStack
    client: HttpClient
    slow_model_id: str
    dead_model_id: str

    async def asked(self, method: str, path: str, body: Any = None) -> Any:
        """Make a request that must succeed; return its document."""
        reply = await self.client.request(method, path, body)
        assert reply.status < 300, (method, path, reply.body)
        return reply.json() if reply.body else None

    async def begun(self) -> str:
        """Return the id of a chat whose model has said something and goes on."""
        body = {"content": [{"type": "text", "text": "hello"}], "model_id": self.slow_model_id}
        chat_id = str((await self.asked("POST", CHATS, body))["id"])
        async with (
            asyncio.timeout(WAIT_S_MAX),
            self.client.stream(f"{CHATS}/{chat_id}/events") as reader,
        ):
            while (event := await reader.event()) is not None and event.event != "message_part":
                pass
        return chat_id

    async def totals(self, chat_id: str) -> Any:
        """Return what a chat used."""
        return (await self.asked("GET", f"{CHATS}/{chat_id}/usage"))["totals"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """Run one stack for all tests here."""
    stack = LocalStack.at(tmp_path_factory.mktemp("home"), **ENVIRONMENT)
    async with MockModels.serving(clock=SystemClock()) as mock:
        started = await asyncio.to_thread(stack.up, "--chatd", "1")
        try:
            assert started.returncode == 0, started.stdout + started.stderr
            key = stack.home.api_key_file.read_text().strip()
            port = int(stack.http.rpartition(":")[2])
            made = Installation(stack, HttpClient(port, {"Authorization": f"Bearer {key}"}), "", "")
            slow = await _model(made, "slow", mock.url, "mock:deltas=5000,delay=50ms")
            dead = await _model(made, "dead", f"http://127.0.0.1:{free_port()}", "dead")
            yield Installation(stack, made.client, slow, dead)
        finally:
            await asyncio.to_thread(stack.parley, "down")


async def _model(made: Installation, provider: str, url: str, name: str) -> str:
    """Make a provider with one model known; return the model's id."""
    body: dict[str, Any] = {"name": provider, "type": "anthropic", "base_url": url}
    stored = await made.asked("POST", "/api/v1/providers", body)
    key = {"provider_id": stored["id"], "key": "sk-of-nobody-0123456789"}
    await made.asked("POST", "/api/v1/provider-keys", key)
    body = {"provider_id": stored["id"], "name": name, "prices": PRICES}
    return str((await made.asked("POST", "/api/v1/models", body))["id"])


async def test_an_interrupted_turn_is_charged_and_says_that_it_was_cut(
    installation: Installation,
) -> None:
    chat_id = await installation.begun()
    await installation.asked("POST", f"{CHATS}/{chat_id}/interrupt", {})
    async with asyncio.timeout(WAIT_S_MAX):
        while (await installation.asked("GET", f"{CHATS}/{chat_id}"))["status"] != "waiting":
            pass
    page = await installation.asked("GET", f"{CHATS}/{chat_id}/messages?limit=1")
    (answer,) = page["messages"]
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "interrupted")
    assert answer["usage"]["is_estimate"] is True
    assert answer["usage"]["cost_micros"] > 0
    totals = await installation.totals(chat_id)
    assert totals["estimated_calls"] == 1
    assert totals["estimated_cost_micros"] == answer["usage"]["cost_micros"]
    shown = await asyncio.to_thread(installation.stack.parley, "show", chat_id)
    assert "(cut: interrupted)" in shown.stdout


async def test_a_call_cut_by_the_death_of_its_process_is_charged(
    installation: Installation,
) -> None:
    chat_id = await installation.begun()
    database = await asyncpg.connect(installation.stack.endpoints()["database"])
    async with asyncio.timeout(WAIT_S_MAX):
        while not await database.fetchval(IS_STORED, chat_id):
            pass
    await database.close()
    processes = (await asyncio.to_thread(installation.stack.status))["processes"]
    (victim,) = (each for each in processes if each["service"] == "chatd")
    psutil.Process(victim["pid"]).kill()
    await asyncio.to_thread(installation.stack.until_whole, without=victim["pid"])
    async with asyncio.timeout(WAIT_S_MAX):
        while (totals := await installation.totals(chat_id))["estimated_calls"] == 0:
            pass
    assert totals["estimated_cost_micros"] > 0
    await installation.asked("POST", f"{CHATS}/{chat_id}/interrupt", {})


async def test_a_dead_provider_is_told_by_the_command_line(installation: Installation) -> None:
    ran = await asyncio.to_thread(
        installation.stack.parley, "run", "hello", "--model", installation.dead_model_id
    )
    assert ran.returncode == 1
    assert "retrying in 0." in ran.stderr
    assert "dead could not be reached for" in ran.stderr
