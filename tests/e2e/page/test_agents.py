"""Agents at the page: a live tree in the panel, and a chat that waits for them and not for me."""

import json

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow


async def test_a_chat_waits_for_its_agents_and_not_for_a_person_and_the_panel_shows_their_tree(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "agatha")
    slow = json.dumps({"prompt": "count to 2000", "name": "Counter"})
    short = json.dumps({"prompt": "repeat after me: here", "name": "Speaker"})
    await written(
        page, f"call: spawn_agent {slow}\nand call: spawn_agent {short}\ncall: wait_agents {{}}"
    )
    await page.until("location.pathname.startsWith('/chats/')")
    origin = await page.run("location.pathname")
    await page.find(".action", "Waits for 2 agents")
    await page.find(".chat-row-line", "Waits for its agents")
    waiting_for_me = await page.run("!!document.querySelector('.is-waiting-for-me')")
    placeholder = await page.run("document.querySelector('.composer textarea').placeholder")
    await page.click(".bar button", "Workspace of the chat")
    await page.click("[role=tab]", "Agents")
    await page.find(".panel .agent-row", "is working")
    await page.find(".panel .agent-row", "has ended")
    await page.click(".panel .agent-row", "Counter")
    await page.until(f"location.pathname !== '{origin}'")
    await page.find(".user-bubble", "count to 2000")
    await page.press("Escape")
    await page.click(".panel a", "spawn_agent")
    await page.until(f"location.pathname === '{origin}'")
    await idle(page)
    await page.click(".card-head", "Waited for agents")
    await page.find(".agent-report", "here")

    assert waiting_for_me is False
    assert placeholder == "Write a message"
