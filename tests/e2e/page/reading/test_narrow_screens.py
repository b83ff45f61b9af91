"""What is beside each other on wide screens, on a phone."""

import json

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import write_first

pytestmark = pytest.mark.slow

SERVER = json.dumps({"mcpServers": {"plain": {"command": "python3"}}})
MENU = "document.querySelector('main .only-phone').getBoundingClientRect()"
#: How much of a notice its words have, and how much of that is beside its buttons.
NOTICE = """
    (() => {
        const edges = (selector) => document.querySelector(selector).getBoundingClientRect();
        const [words, button] = [edges('.notice-text'), edges('.notice button')];
        return [words.width / edges('.notice').width > 0.6, button.top >= words.bottom];
    })()
"""


async def test_the_menu_is_at_the_top_and_notices_have_a_line_of_their_own_on_a_phone(
    stack: LocalStack, page: Page
) -> None:
    places = {}
    await page.resize(390, 800, mobile=True)
    for address in ("/", "/settings"):
        await page.visit(f"http://{stack.http}{address}")
        await page.find("main .only-phone")
        places[address] = await page.run(f"[Math.round({MENU}.left), {MENU}.top < 60]")
    await page.resize(1280, 800)
    await page.visit(f"http://{stack.http}/")
    await page.find(".composer textarea")
    written = json.dumps({"path": ".mcp.json", "content": SERVER})
    await write_first(page, f"call: write_file {written}")
    await page.find(".notice", "MCP server")
    wide = await page.run(NOTICE)
    await page.resize(390, 800, mobile=True)
    await page.until("innerWidth === 390")

    assert wide == [True, False]
    assert await page.run(NOTICE) == [True, True]
    assert places == {"/": places["/settings"], "/settings": [places["/settings"][0], True]}
