"""The workspace of a chat is switched in its panel."""

import asyncio
from typing import Any

import pytest

from support.host.conditions import until
from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, open_panel, sign_in, write_first

pytestmark = pytest.mark.slow

WORKSPACES = "/api/v1/workspaces"
CHOOSE = """
    ((words) => {{
        const field = document.querySelector('.dialog select');
        field.value = [...field.options].find((each) => each.label.startsWith(words)).value;
        field.dispatchEvent(new Event('change', {{bubbles: true}}));
    }})({words!r})
"""


def ready(stack: LocalStack, name: str) -> Any:
    """Create a workspace of Swantje, and wait until it can be used."""
    (scratch,) = [
        each
        for each in call(stack, "GET", "/api/v1/templates", login="swantje")["items"]
        if each["name"] == "scratch"
    ]
    body = {"template_id": scratch["id"], "name": name}
    made = call(stack, "POST", WORKSPACES, body, login="swantje")
    until(
        lambda: (
            call(stack, "GET", f"{WORKSPACES}/{made['id']}", login="swantje")["state"] == "ready"
        ),
        f"the workspace {name}",
        within_s=60,
    )
    return made


async def test_a_chat_is_switched_to_another_workspace_and_back(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "swantje")
    kept = await asyncio.to_thread(ready, stack, "kept")
    lost = await asyncio.to_thread(ready, stack, "lost")
    await page.visit(f"http://{stack.http}/")
    await write_first(page, "run: echo one > a.txt")
    chat = "/api/v1" + await page.run("location.pathname")
    await open_panel(page, "Workspace")
    await page.click(".panel button", "Another workspace")
    await page.find(".dialog select")
    await page.until("document.querySelector('.dialog select').options.length >= 3")
    await page.run(CHOOSE.format(words="lost"))
    await page.see("Files are not copied")
    shown = await problems_in_all_looks(page)
    call(stack, "DELETE", f"{WORKSPACES}/{lost['id']}", login="swantje")
    await asyncio.to_thread(
        until,
        lambda: (
            lost["id"]
            not in [each["id"] for each in call(stack, "GET", WORKSPACES, login="swantje")["items"]]
        ),
        "the workspace is gone",
        within_s=60,
    )
    await page.click(".dialog button", "Switch")
    await page.find(".dialog .field-problem")
    refused = call(stack, "GET", chat, login="swantje")["workspace_id"]
    await page.run(CHOOSE.format(words="kept"))
    await page.click(".dialog button", "Switch")
    await page.until("!document.querySelector('.dialog')")
    await page.find(".panel tbody tr", "kept")
    switched = call(stack, "GET", chat, login="swantje")["workspace_id"]
    await page.click(".panel button", "Another workspace")
    await page.find(".dialog select")
    await page.run(CHOOSE.format(words="Own files"))
    await page.click(".dialog button", "Switch")
    await page.see("No workspace was chosen.")
    back = call(stack, "GET", chat, login="swantje")["workspace_id"]

    assert shown == {}
    assert (refused, switched, back) == (None, kept["id"], None)
