"""A turn that failed is run again at the page, by the owner of its chat alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.net.browser import Browser, BrowserProcess, browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, new_user, sign_in

pytestmark = pytest.mark.slow

ASKED = "How deep is the harbour?"
FAILS_ONCE = "mock:fail=400*1,text=Twelve"
BUTTONS = "[...document.querySelectorAll('.notice button')].map((each) => each.innerText)"
USER_MESSAGES = "document.querySelectorAll('.user-message').length"


@asynccontextmanager
async def failing_model(stack: LocalStack) -> AsyncIterator[str]:
    """Give the id of a model whose first answer is an error."""
    async with MockModels.serving(clock=SystemClock()) as mock:
        body = {"name": "failing", "type": "anthropic", "base_url": mock.url}
        made = await asyncio.to_thread(call, stack, "POST", "/api/v1/providers", body)
        try:
            key = {"provider_id": made["id"], "key": "sk-0123456789"}
            await asyncio.to_thread(call, stack, "POST", "/api/v1/provider-keys", key)
            body = {"provider_id": made["id"], "name": FAILS_ONCE}
            model = await asyncio.to_thread(call, stack, "POST", "/api/v1/models", body)
            yield model["id"]
        finally:
            await asyncio.to_thread(call, stack, "DELETE", f"/api/v1/providers/{made['id']}")


async def test_a_failed_turn_is_run_again_by_its_owner_and_by_no_reader(
    stack: LocalStack, chromium: Browser, browser_process: BrowserProcess
) -> None:
    reader_id = await asyncio.to_thread(new_user, stack, "renate")
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "tilda")
    async with failing_model(stack) as model_id:
        # With a title of its own, so that none is asked of the model before the turn.
        content = [{"type": "text", "text": ASKED}]
        body = {"content": content, "model_id": model_id, "title": "The harbour"}
        chat = await asyncio.to_thread(call, stack, "POST", "/api/v1/chats", body, login="tilda")
        path = f"/api/v1/chats/{chat['id']}"
        shares = {"shares": [{"user_id": reader_id}]}
        await asyncio.to_thread(call, stack, "PUT", f"{path}/shares", shares, login="tilda")
        await page.visit(f"http://{stack.http}/chats/{chat['id']}")
        await page.find(".notice button", "Try again")
        failed = await problems_in_all_looks(page)
        async with browser(browser_process.url()) as others:
            reading = await others.page()
            await sign_in(reading, stack, "renate")
            await reading.visit(f"http://{stack.http}/chats/{chat['id']}")
            await reading.find(".notice .error-detail", "HTTP 400")
            offered = await reading.run(BUTTONS)
            said = list(reading.said)
        await page.click(".notice button", "Try again")
        await page.find(".assistant-message", "Twelve")
        await idle(page)
        shown = await page.run(USER_MESSAGES)
        told = await asyncio.to_thread(call, stack, "GET", f"{path}/messages", login="tilda")

    assert failed == {}
    assert (offered, said) == ([], [])
    assert shown == 1
    assert sorted(each["role"] for each in told["messages"]) == ["assistant", "user"]
