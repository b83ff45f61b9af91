"""Signing in at the page."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import PASSWORD, call

pytestmark = pytest.mark.slow

PASTE = """
    (() => {
        const data = new DataTransfer();
        data.setData('text/plain', 'a long thought\\n'.repeat(60));
        const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true});
        document.querySelector('.composer textarea').dispatchEvent(event);
    })()
"""


async def test_a_person_comes_back_to_the_address_that_asked_for_a_sign_in(
    stack: LocalStack, page: Page
) -> None:
    await page.run("document.cookie = 'parley_session=; max-age=0'")
    await page.ask("Network.clearBrowserCookies")
    await page.visit(f"http://{stack.http}/settings/display?unread=1")
    await page.until("location.pathname === '/sign-in'")
    await page.click("input[name=login]")
    await page.type("paula")
    await page.click("input[name=password]")
    await page.type("some other words entirely")
    await page.press("Enter")
    await page.find("[role=alert]")
    refused = await page.run("document.querySelector('[role=alert]').innerText")
    await page.run("document.querySelector('input[name=password]').select()")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.find(".choices")

    assert "password" in refused
    assert await page.run("location.pathname + location.search") == "/settings/display?unread=1"


async def test_a_spent_link_shows_a_page_that_says_so(stack: LocalStack, page: Page) -> None:
    user_id = call(stack, "POST", "/api/v1/users", {"login": "gemma", "role": "member"})["id"]
    link = call(stack, "POST", f"/api/v1/users/{user_id}/sign-in-links", {})["url"]
    token = link.partition("token=")[2]
    body = {"token": token, "password": PASSWORD}
    call(stack, "POST", "/api/v1/sign-in/link/password", body)
    await page.visit(f"http://{stack.http}/link?token={token}")
    await page.see("That did not work")
    await page.find("a", "Sign in")


async def test_a_paste_after_the_end_of_the_session_leads_to_the_sign_in_and_is_kept(
    stack: LocalStack, page: Page
) -> None:
    await page.click(".composer textarea")
    await page.ask("Network.clearBrowserCookies")
    await page.run(PASTE)
    await page.until("location.pathname === '/sign-in'")
    await page.click("input[name=login]")
    await page.type("paula")
    await page.click("input[name=password]")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.find(".composer textarea", "a long thought")


async def test_a_session_that_ended_keeps_what_was_written(stack: LocalStack, page: Page) -> None:
    await page.click(".composer textarea")
    await page.type("a thought that must not be lost")
    await page.ask("Network.clearBrowserCookies")
    await page.press("Enter")
    await page.until("location.pathname === '/sign-in'")
    await page.click("input[name=login]")
    await page.type("paula")
    await page.click("input[name=password]")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.find(".composer textarea", "a thought that must not be lost")
    await page.press("Enter")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.find(".user-bubble", "a thought that must not be lost")
