"""The lifetime of a workspace at the page of its owner."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, open_panel, sign_in, write_first

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000


async def test_the_owner_of_a_workspace_extends_its_lifetime_by_an_hour(
    stack: LocalStack, chromium: Browser
) -> None:
    async def workspace() -> Any:
        listed = await asyncio.to_thread(call, stack, "GET", "/api/v1/workspaces", login="laila")
        (only,) = listed["items"]
        return only

    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "laila")
    await page.click(".composer button", "Own files")
    await page.click("[role=menuitemradio]", "cratch")
    await write_first(page, "repeat after me: here")
    before = await workspace()
    await open_panel(page, "Workspace")
    await page.click(".panel button", "One hour more")
    hours = before["ttl_ms"] // HOUR_MS + 1
    await page.find(".panel dd", f"{hours} h, chosen for this workspace")
    after = await workspace()

    assert after["ttl_ms"] == before["ttl_ms"] + HOUR_MS
    assert datetime.fromisoformat(after["deadline"]) > datetime.fromisoformat(before["deadline"])
