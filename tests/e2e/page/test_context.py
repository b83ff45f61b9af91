"""The context of a chat at the page: the parts of its prompt and its pinned instructions."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, open_panel, sign_in, written

pytestmark = pytest.mark.slow


async def test_the_panel_shows_the_parts_of_the_prompt_and_pins_changed_instructions_again(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "conny")
    await written(page, "run: echo be brief > AGENTS.md")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.see("That is all the demo does.")
    await idle(page)
    await written(page, "run: echo be very brief > AGENTS.md")
    await page.until("document.querySelectorAll('.user-message').length === 2")
    await idle(page)
    await open_panel(page, "Context")
    await page.find(".panel tr", "Messages")
    await page.find(".panel tr", "Tools")
    await page.find(".notice", "The files have changed")
    await page.click(".panel button", "Read them again")
    await page.find(".panel .entry", "13 B")
    await page.until("!document.querySelector('.panel .notice')")
