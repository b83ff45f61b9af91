"""The log of the preparation of a workspace, beside its chat."""

import asyncio

import pytest

from support.host.conditions import until
from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, open_panel, sign_in, write_first

pytestmark = pytest.mark.slow

SCRIPT = "echo fetching parts; echo all parts are there"


async def test_the_log_of_the_preparation_of_a_workspace_is_shown(
    stack: LocalStack, chromium: Browser
) -> None:
    body = {"name": "logged", "kind": "scratch", "setup_script": SCRIPT}
    made = call(stack, "POST", "/api/v1/templates", body)
    try:
        page = await chromium.page()
        await page.resize(1280, 900)
        await sign_in(page, stack, "lotte")
        await page.click(".composer button", "Own files")
        await page.click("[role=menuitemradio]", "logged")
        await write_first(page, "repeat after me: here")
        await open_panel(page, "Workspace")
        await page.click(".panel summary", "Log of its preparation")
        await page.find(".panel .terminal-output", "all parts are there")
        shown = await page.run("document.querySelector('.panel .terminal-output').innerText")
        # No stream stays open for it beside those of the feed and the chat.
        await asyncio.to_thread(
            until,
            lambda: not [url for url in page.streams.values() if "/workspaces/" in url],
            "the end of the stream of the log",
            within_s=20,
        )
        problems = await problems_in_all_looks(page)
    finally:
        call(stack, "DELETE", f"/api/v1/templates/{made['id']}")

    assert "fetching parts\nall parts are there" in shown
    assert problems == {}
