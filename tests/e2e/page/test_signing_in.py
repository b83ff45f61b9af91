"""Signing in at the page."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import PASSWORD

pytestmark = pytest.mark.slow


async def test_a_person_comes_back_to_the_address_that_asked_for_a_sign_in(
    stack: LocalStack, page: Page
) -> None:
    await page.run("document.cookie = 'parley_session=; max-age=0'")
    await page.ask("Network.clearBrowserCookies")
    await page.visit(f"http://{stack.http}/waiting?unread=1")
    await page.until("location.pathname === '/sign-in'")
    await page.click("input[name=login]")
    await page.type("ada")
    await page.click("input[name=password]")
    await page.type("some other words entirely")
    await page.press("Enter")
    await page.find("[role=alert]")
    refused = await page.run("document.querySelector('[role=alert]').innerText")
    await page.run("document.querySelector('input[name=password]').select()")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.see("Nothing waits for you")

    assert "password" in refused
    assert await page.run("location.pathname + location.search") == "/waiting?unread=1"
