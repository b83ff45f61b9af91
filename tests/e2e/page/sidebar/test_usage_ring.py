"""The ring of one's own limits below the list of chats."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, new_user, sign_in

pytestmark = pytest.mark.slow


async def test_a_ring_shows_how_much_of_ones_limits_is_used(
    stack: LocalStack, chromium: Browser
) -> None:
    user_id = new_user(stack, "ringa")
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "ringa")
    await page.visit(f"http://{stack.http}/")
    await page.click(".side-foot button[aria-label^='Running workspaces']")
    await page.find("[role=menuitem]", "Running workspaces")
    await page.press("Escape")
    body = {"limit_micros": 1, "period": "month"}
    path = f"/api/v1/spend-limits/users/{user_id}"
    call(stack, "PUT", path, body)
    await page.visit(f"http://{stack.http}/")
    await page.click(".side-foot button[aria-label^='Spent this month']")
    await page.find("[role=menuitem]", "$0 of")
    shown = await problems_in_all_looks(page)
    await page.click("[role=menuitem]", "Spent this month")
    await page.until("location.pathname === '/settings/usage'")
    call(stack, "DELETE", path)

    assert shown == {}
