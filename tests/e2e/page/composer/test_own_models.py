"""A person's own models in the settings, and what the composer makes of them."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, choose, sign_in

pytestmark = pytest.mark.slow

CHECK = """
    (([model, label]) => {{
        const row = [...document.querySelectorAll('tbody tr')].find(
            (each) => each.innerText.includes(model));
        [...row.querySelectorAll('label.choice')].find(
            (each) => each.innerText.includes(label)).querySelector('input').click();
    }})({given!r})
"""


async def ready(page: Page) -> None:
    """Wait until the section shows models."""
    await page.find("tbody tr", "Scripted demo")
    await page.find("tbody tr", "owned-2")
    await page.find(".field", "New chats")


async def test_own_models_are_chosen_in_the_settings_and_shown_in_the_composer(
    stack: LocalStack, chromium: Browser
) -> None:
    made = call(
        stack, "POST", "/api/v1/providers", {"name": "owned", "type": "openai_compatible",
        "base_url": "http://127.0.0.1:9/v1"},
    )  # fmt: skip
    for number in range(3):
        call(
            stack, "POST", "/api/v1/models",
            {"provider_id": made["id"], "name": f"owned-{number}", "max_effort": "high"},
        )  # fmt: skip
    page = await chromium.page()
    try:
        await page.resize(1280, 900)
        await sign_in(page, stack, "mona")
        await page.visit(f"http://{stack.http}/settings/models")
        await ready(page)
        await choose(page, "New chats", "owned-1")
        await page.find(".field", "Effort: new chats")
        await choose(page, "Effort: new chats", "low")
        await page.until("document.querySelectorAll('select')[1].value === 'low'")
        await page.run(CHECK.format(given=["owned-2", "Favourite"]))
        await page.until("document.querySelectorAll('tbody input:checked').length === 1")
        await page.run(CHECK.format(given=["owned-0", "Hidden"]))
        await page.until("document.querySelectorAll('tbody input:checked').length === 2")
        await page.click("tbody tr:first-child input[type=number]")
        await page.type("100")
        await page.see("Never summarized")
        await page.press("Enter")
        await page.see("Your threshold is saved.")
        shown = await problems_in_all_looks(page)
        stored = call(stack, "GET", "/api/v1/me/settings", login="mona")
        own = call(stack, "GET", "/api/v1/me/model-overrides", login="mona")["items"]
        await page.visit(f"http://{stack.http}/")
        await page.click(".composer button", "owned-1")
        await page.find(".menu [role=group]", "Favourites")
        offered = await page.run(
            "[...document.querySelectorAll('.menu [role=group] [role=menuitemradio]')]"
            ".map((each) => each.innerText.trim())"
        )
    finally:
        call(stack, "DELETE", f"/api/v1/providers/{made['id']}")

    assert shown == {}
    assert list(stored["compaction_threshold_percents"].values()) == [100]
    assert (own[0]["mode"], own[0]["reasoning_effort"]) == ("model", "low")
    assert offered[0] == "owned-2"
    assert "owned-0" not in offered
