"""What a chat is begun with, and the card of the advisor."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

ADVISOR = "/api/v1/settings/advisor"


async def test_a_chat_begins_in_a_new_workspace_of_a_template_and_another_in_the_same(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "wanda")
    await page.click(".composer button", "Own files")
    await page.click("[role=menuitemradio]", "cratch")
    await written(page, "repeat after me: in a workspace")
    await page.until("location.pathname.startsWith('/chats/')")
    first = await page.run("location.pathname")
    await idle(page)
    (made,) = call(stack, "GET", "/api/v1/workspaces", login="wanda")["items"]
    await page.visit(f"http://{stack.http}/")
    await page.click(".composer button", "Own files")
    await page.click("[role=menuitemradio]", made["name"])
    await written(page, "repeat after me: in the same")
    await page.until("location.pathname.startsWith('/chats/')")
    second = await page.run("location.pathname")
    await idle(page)
    chats = [call(stack, "GET", f"/api/v1{each}", login="wanda") for each in (first, second)]
    assert [each["workspace_id"] for each in chats] == [made["id"], made["id"]]


async def test_advice_has_a_card_that_opens_and_closes(
    stack: LocalStack, chromium: Browser
) -> None:
    call(stack, "PUT", ADVISOR, {"enabled": True, "uses_per_turn_max": 1})
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "agatha")
    await written(page, 'call: advisor {"question": "Is this sound?"}')
    await page.find(".card-head", "Asked the advisor")
    await idle(page)
    await page.click(".card-head", "Asked the advisor")
    await page.find(".advisor-question", "Is this sound?")
    await page.see("0 more questions in this turn")
    await page.click(".card-head", "Asked the advisor")
    await page.until("!document.querySelector('.advisor-question')")
    call(stack, "PUT", ADVISOR, {"enabled": False})
