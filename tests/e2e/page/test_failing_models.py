"""A model whose provider is away: the page counts down to the next attempt."""

import pytest

from support.host.ports import free_port
from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle

pytestmark = pytest.mark.slow


async def test_a_retry_counts_down_and_an_interrupt_ends_it(stack: LocalStack, page: Page) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    provider = {"name": "away", "type": "anthropic", "base_url": url}
    made = call(stack, "POST", "/api/v1/providers", provider)
    try:
        key = {"provider_id": made["id"], "key": "sk-of-nobody-0123456789"}
        call(stack, "POST", "/api/v1/provider-keys", key)
        body = {"provider_id": made["id"], "name": "away-model", "max_effort": "high"}
        model = call(stack, "POST", "/api/v1/models", body)
        await page.visit(f"http://{stack.http}/")
        await page.click(".composer-foot button", "Scripted demo")
        await page.click("[role=menuitemradio]", "away-model")
        await page.click(".composer-foot button", "away-model")
        await page.click("[role=menuitemradio]", "high")
        await page.click(".composer textarea")
        await page.type("hello")
        await page.press("Enter")
        await page.see("is temporarily unavailable")
        await page.find(".countdown", "Trying again")
        chat_id = (await page.run("location.pathname")).rpartition("/")[2]
        chat = call(stack, "GET", f"/api/v1/chats/{chat_id}", login="paula")
        await page.click(".send-button.is-stop")
        await idle(page)
    finally:
        call(stack, "DELETE", f"/api/v1/providers/{made['id']}")

    assert (chat["model_id"], chat["reasoning_effort"]) == (model["id"], "high")
