"""Races at the page: started from the composer, compared side by side, applied and cancelled."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, sign_in, written

pytestmark = pytest.mark.slow

QUICK, SLOW = "mock:deltas=2", "mock:deltas=5000,delay=50ms"
TASK = "run: printf 'made\\n' > made"


@pytest_asyncio.fixture
async def page(stack: LocalStack, chromium: Browser) -> AsyncIterator[Page]:
    """Give a tab at a stack with two models of a mock, the second one slow, beside the demo."""
    async with MockModels.serving(clock=SystemClock()) as mock:
        body: dict[str, Any] = {"name": "page-race", "type": "anthropic", "base_url": mock.url}
        made = await asyncio.to_thread(call, stack, "POST", "/api/v1/providers", body)
        key = {"provider_id": made["id"], "key": "sk-of-nobody-0123456789"}
        await asyncio.to_thread(call, stack, "POST", "/api/v1/provider-keys", key)
        for name in (QUICK, SLOW):
            body = {"provider_id": made["id"], "name": name, "prices": {"input": 3, "output": 15}}
            await asyncio.to_thread(call, stack, "POST", "/api/v1/models", body)
        try:
            opened = await chromium.page()
            await opened.resize(1280, 900)
            await sign_in(opened, stack, "rachel")
            yield opened
        finally:
            path = f"/api/v1/providers/{made['id']}"
            await asyncio.to_thread(call, stack, "DELETE", path)


async def test_models_race_are_compared_and_one_is_applied(stack: LocalStack, page: Page) -> None:
    await page.click(".composer button", "Race")
    await page.click(".race-options label", "Scripted demo")
    await page.click(".race-options label", "Check command")
    await page.type("grep -q m made")
    await written(page, TASK)
    # One model is no race; what was written stays.
    await page.find(".race-options [role=alert]", "Choose 2 to 6 models")
    kept = await page.run("document.querySelector('.composer textarea').value")
    start = await problems_in_all_looks(page)
    await page.click(".race-options label", QUICK)
    await page.click(".composer textarea")
    await page.press("Enter")
    await page.until("location.pathname.startsWith('/races/')")
    await page.find("td .badge", "passed")
    await page.find("td .badge", "failed")
    await page.find("tbody tr", "1 file +1")
    answers = await problems_in_all_looks(page)
    await page.click("button", "Changes")
    await page.find(".race-candidate .diff .is-added", "made")
    await page.find(".race-candidate", "Nothing was changed.")
    changes = await problems_in_all_looks(page)
    await page.click("button", "Checks")
    await page.find(".race-candidate", "exit code 2")
    place = await page.run(
        "[...document.querySelectorAll('.race-candidate')]"
        ".findIndex((each) => each.innerText.includes('Scripted demo'))"
    )
    await page.click(".race-candidate button", "Apply", place=place)
    await page.click("dialog button", "Apply")
    await page.find("dialog .notice", "1 file was written")
    await page.click("dialog button", "Close")
    await page.until("!document.querySelector('dialog')")
    await page.find(".race-candidate.is-applied", "Scripted demo")
    race_id = (await page.run("location.pathname")).rpartition("/")[2]
    stored = await asyncio.to_thread(call, stack, "GET", f"/api/v1/races/{race_id}", login="rachel")
    await page.click("a", "chat of the race")
    await page.click(".chat-foot a", "Compare")
    await page.until(f"location.pathname === '/races/{race_id}'")
    await page.click("a", "all races")
    await page.find("td a", "made")
    listed = await problems_in_all_looks(page)

    assert kept == TASK
    assert (start, answers, changes, listed) == ({}, {}, {}, {})
    applied = {each["model_id"]: each["chat_id"] for each in stored["candidates"]}["scripted"]
    assert QUICK in [each["model"] for each in stored["candidates"]]
    assert stored["applied_chat_id"] == applied


async def test_a_race_is_cancelled(stack: LocalStack, page: Page) -> None:
    await page.click(".composer button", "Race")
    await page.click(".race-options label", "Scripted demo")
    await page.click(".race-options label", SLOW)
    await written(page, "count to 1000")
    await page.until("location.pathname.startsWith('/races/')")
    await page.find("td .badge", "running")
    await page.click("button", "Cancel the race")
    await page.click("dialog button", "Cancel the race")
    await page.see("The race is cancelled.")
    await page.until("!document.body.innerText.includes('At work')")
    await page.see("Cancelled")
