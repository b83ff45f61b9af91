"""The menu of a row in the list of chats, by the right button and by its key."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

ROW = "document.querySelector('.chat-row-link')"
CONTEXT_MENU = 93


async def right_click(page: Page) -> None:
    """Press and release the right button on the first row."""
    x, y = await page.run(
        f"(({{x, y, height}}) => [x + 60, y + height / 2])({ROW}.getBoundingClientRect())"
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        await page.ask(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="right", clickCount=1
        )


async def test_a_row_has_its_menu_by_the_right_button_and_by_its_key(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "ronja")
    await written(page, "repeat after me: to be pinned")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    await right_click(page)
    await page.click("[role=menuitem]", "Pin")
    await page.until("document.querySelector('.side h2')?.textContent.includes('Pinned')")
    pinned = call(stack, "GET", f"/api/v1/chats/{chat_id}", login="ronja")["pin_order"]
    await page.run(f"{ROW}.focus()")
    await page.ask(
        "Input.dispatchKeyEvent",
        type="rawKeyDown",
        key="ContextMenu",
        windowsVirtualKeyCode=CONTEXT_MENU,
    )
    await page.find("[role=menuitem]", "Unpin")
    await page.press("Escape")
    await page.until(f"document.activeElement === {ROW}")

    assert pinned > 0
    assert page.said == []
