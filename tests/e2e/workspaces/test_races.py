"""Races: one task for several models, compared, applied, cancelled and read after a restart."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

DEMO = "scripted"
TASK = "run: printf 'made\\n' > made"


@pytest_asyncio.fixture
async def models(stack: LocalStack) -> AsyncIterator[tuple[str, str]]:
    """Two models of a mock, which say something and change nothing; the second one is slow."""
    async with MockModels.serving(clock=SystemClock()) as mock:
        body: dict[str, Any] = {"name": "race-mock", "type": "anthropic", "base_url": mock.url}
        made = call(stack, "POST", "/api/v1/providers", body)
        try:
            key = {"provider_id": made["id"], "key": "sk-of-nobody-0123456789"}
            call(stack, "POST", "/api/v1/provider-keys", key)
            names = ("mock:deltas=2", "mock:deltas=5000,delay=50ms")
            prices = {"input": 3, "output": 15}
            for name in names:
                body = {"provider_id": made["id"], "name": name, "prices": prices}
                call(stack, "POST", "/api/v1/models", body)
            yield names
        finally:
            call(stack, "DELETE", f"/api/v1/providers/{made['id']}")


async def parley(stack: LocalStack, *arguments: str) -> str:
    ran = await asyncio.to_thread(stack.parley, *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


async def race(stack: LocalStack, *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(await parley(stack, "race", *arguments, "--json"))
    return told


async def test_models_race_in_forks_and_one_is_applied_after_a_restart(
    stack: LocalStack, models: tuple[str, str]
) -> None:
    quick, _ = models
    made = await race(stack, TASK, "--model", DEMO, "--model", quick, "--check", "grep -q m made")
    first, second = made["candidates"]
    assert (first["model"], first["status"], second["status"]) == (DEMO, "done", "done")
    assert (first["check"]["passed"], second["check"]["passed"]) == (True, False)
    assert second["cost_micros"] > 0
    assert first["duration_ms"] > 0
    table = (await parley(stack, "race", "show", made["id"])).splitlines()
    assert " ".join(table[0].split()) == "# model status check files lines time cost answer"
    assert table[1].split()[:6] == ["1", DEMO, "done", "passed", "1", "+1"]
    assert table[2].split()[3:5] == ["failed", "0"]

    await parley(stack, "down")
    stack.ensure_up()
    assert (await race(stack, "show", made["id"]))["candidates"] == made["candidates"]
    assert await parley(stack, "race", "apply", made["id"], DEMO) == "made\n"
    assert (await race(stack, "show", made["id"]))["applied_chat_id"] == first["chat_id"]
    assert made["id"] in await parley(stack, "race", "ls")
    # The chat of the race goes on in its workspace.
    assert '"output": "made' in await parley(stack, "send", made["id"], "--json", "run: cat made")
    await parley(stack, "audit")


async def test_a_race_is_cancelled_as_a_whole(stack: LocalStack, models: tuple[str, str]) -> None:
    _, slow = models
    started = await race(stack, "count to 1000", "--model", slow, "--model", DEMO, "--no-wait")
    assert [each["status"] for each in started["candidates"]] == ["running", "running"]
    early = await asyncio.to_thread(stack.parley, "race", "apply", started["id"], "1")
    assert early.returncode != 0
    assert "has not ended" in early.stderr
    assert await parley(stack, "race", "cancel", started["id"]) == "cancelled\n"
    async with asyncio.timeout(30):
        while True:
            found = await race(stack, "show", started["id"])
            if all(each["status"] == "done" for each in found["candidates"]):
                break
    assert found["cancelled_at"]


async def test_a_race_needs_two_to_six_known_models_each_once(
    stack: LocalStack, models: tuple[str, str]
) -> None:
    quick, _ = models
    for named, problem in (
        ((DEMO,), "models"),
        ((DEMO, DEMO), "names a model twice"),
        ((DEMO, "no-such-model"), "no-such-model"),
        ((DEMO, quick) * 4, "models"),
    ):
        options = [part for name in named for part in ("--model", name)]
        refused = await asyncio.to_thread(stack.parley, "race", "hello", *options)
        assert refused.returncode != 0
        assert problem in refused.stderr
