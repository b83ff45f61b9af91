"""Break-glass, the audit log and retention at the page of an administrator."""

import asyncio

import pytest

from support.host.conditions import until
from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, new_user, sign_in

pytestmark = pytest.mark.slow


async def test_an_access_is_opened_told_to_its_user_and_recorded(
    stack: LocalStack, chromium: Browser
) -> None:
    user_id = new_user(stack, "bertha")
    admin_id = new_user(stack, "brigid")
    call(stack, "PATCH", f"/api/v1/users/{admin_id}", {"role": "admin"})
    say = {"content": [{"type": "text", "text": "repeat after me: x"}], "title": "Of Bertha"}
    call(stack, "POST", "/api/v1/chats", say, login="bertha")
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "brigid")
    await page.visit(f"http://{stack.http}/admin/break-glass")
    await page.until(f"document.querySelector('option[value=\"{user_id}\"]')")
    await page.run(f"""
        (() => {{
            const field = document.querySelector('select');
            field.value = '{user_id}';
            field.dispatchEvent(new Event('change', {{bubbles: true}}));
        }})()
    """)
    await page.click("input", place=-1)
    await page.type("She asked for help with a chat")
    await page.press("Enter")
    await page.find("td a", "Of Bertha")
    # chatd hands its events over after the access is open.
    recorded = "/api/v1/audit-log?action=break_glass.opened"
    await asyncio.to_thread(
        until, lambda: call(stack, "GET", recorded)["items"], "an entry in the log", within_s=60
    )
    await page.visit(f"http://{stack.http}/admin/audit-log")
    await page.click("input[placeholder='user.created']")
    await page.type("break_glass.opened")
    await page.until(
        "[...document.querySelectorAll('td code')].some((each) => each.innerText ==="
        " 'break_glass.opened') && [...document.querySelectorAll('td:nth-child(2) code')]"
        ".every((each) => each.innerText === 'break_glass.opened')"
    )
    await page.click("button", "Verify the log")
    await page.see("The log is intact")
    await page.visit(f"http://{stack.http}/admin/retention")
    await page.see("Nothing: no chat is old enough.")
    await page.ask("Network.clearBrowserCookies")
    await sign_in(page, stack, "bertha")
    await page.find(".notice", "An administrator can read your chats")
    await page.find(".notice", "Reason: She asked for help with a chat")
    (access,) = call(stack, "GET", "/api/v1/break-glass", login="bertha")["items"]
    assert access["administrator_id"] == admin_id
