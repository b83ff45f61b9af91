"""What a chat is begun with, and the card of the advisor."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

CHOOSE = """
    ((words) => {{
        const field = document.querySelector('.dialog select');
        field.value = [...field.options].find((each) => each.label.startsWith(words)).value;
        field.dispatchEvent(new Event('change', {{bubbles: true}}));
    }})({words!r})
"""
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


async def test_the_fallback_model_of_a_chat_is_chosen_taken_away_and_left_to_all(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "fanny")
    await written(page, "repeat after me: here")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    path = "/api/v1" + await page.run("location.pathname")
    stored = []
    for words, known in (("Scripted demo", "As configured"), ("None", "Scripted"), ("As", "None")):
        await page.click(".composer button", "Scripted demo")
        await page.find("[role=menuitem] .menu-item-hint", known)
        await page.click("[role=menuitem]", "Fallback model")
        await page.run(CHOOSE.format(words=words))
        await page.click(".dialog button", "Save")
        await page.until("!document.querySelector('.dialog')")
        stored.append(call(stack, "GET", path, login="fanny")["fallback_model_id"])
    models = call(stack, "GET", "/api/v1/models", login="fanny")["items"]
    demo = next(each["id"] for each in models if each["display_name"] == "Scripted demo")

    assert stored == [demo, "none", None]
