"""The list of chats: filters as pills in its search, and groups by status."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_of
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow


async def test_filters_are_pills_that_are_removed_and_chats_are_grouped_by_status(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "fiona")
    await written(page, "repeat after me: at rest")
    await page.find(".assistant-message", "at rest")
    await idle(page)
    await page.click(".side-find input")
    await page.type("rest is:archived ")
    await page.find(".side-find .pill", "Archived")
    await page.until("location.search.includes('show=archived')")
    left = await page.run("document.querySelector('.side-find input').value")
    await page.find(".side-empty", "No chat contains these words.")
    with_pill = await problems_of(page)
    await page.run("document.activeElement.select()")
    await page.press("Backspace")
    await page.find(".side-empty", "No chat is archived.")
    await page.press("Backspace")
    await page.until("!document.querySelector('.pill') && !location.search.includes('show')")
    await page.click(".side-filters button", "Unread")
    await page.click(".pill", "Unread")
    await page.until("!document.querySelector('.pill')")
    await page.click(".side-filters button", "By status")
    await page.find(".side-group", "At rest")
    await page.visit(await page.run("location.href"))
    await page.find(".side-group", "At rest")
    grouped = await problems_of(page)

    assert left == "rest"
    assert (with_pill, grouped) == ([], [])
