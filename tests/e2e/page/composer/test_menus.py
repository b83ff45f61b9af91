"""The menus and keys of the composer: skills, models by provider, and the key that sends."""

import json

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks, problems_of
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

FIELD = "document.querySelector('.composer textarea').value"


def skill(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n"


async def test_a_slash_offers_skills_of_the_person_and_of_the_workspace(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "skadi")
    body = {"content": skill("proofread", "Reads a text for mistakes")}
    call(stack, "PUT", "/api/v1/me/skills/proofread", body, login="skadi")
    await page.click(".composer textarea")
    await page.type("please /proof")
    await page.find(".composer-commands .menu-heading", "Your skills")
    await page.press("Enter")
    await page.until(f"{FIELD} === 'please the skill proofread '")
    await page.run("document.activeElement.select()")
    path = {"path": ".agents/skills/deploy/SKILL.md", "content": skill("deploy", "Ships it")}
    await page.type(f"call: write_file {json.dumps(path)}")
    await page.press("Enter")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    call(stack, "POST", f"/api/v1/chats/{chat_id}/context/refresh", {}, login="skadi")
    await page.click(".composer textarea")
    await page.type("/")
    await page.find(".composer-commands .menu-heading", "Commands")
    await page.find(".composer-commands .menu-heading", "Skills of the workspace")
    await page.find("[role=option]", "/proofread")
    shown = await problems_in_all_looks(page)
    await page.type("dep")
    await page.click("[role=option]", "/deploy")
    await page.until(f"{FIELD} === 'Use the skill deploy: '")

    assert shown == {}


async def test_models_are_grouped_by_provider_and_searched(
    stack: LocalStack, chromium: Browser
) -> None:
    body = {
        "name": "grouped",
        "type": "anthropic",
        "display_name": "Grouped",
    }
    made = call(stack, "POST", "/api/v1/providers", body)
    key = {"provider_id": made["id"], "key": "sk-of-nobody-0123456789"}
    call(stack, "POST", "/api/v1/provider-keys", key)
    for number in range(8):
        body = {"provider_id": made["id"], "name": f"grouped-{number}"}
        call(stack, "POST", "/api/v1/models", body)
    page = await chromium.page()
    try:
        await page.resize(1280, 900)
        await sign_in(page, stack, "modesta")
        await page.click(".composer button", "Scripted demo")
        await page.until("document.activeElement.type === 'search'")
        await page.find(".menu [role=group]", "Demo")
        await page.find(".menu [role=group]", "Grouped")
        shown = await problems_in_all_looks(page)
        await page.type("grouped 5")
        await page.until("document.querySelectorAll('[role=menuitemradio]').length === 1")
        await page.press("Enter")
        await page.find(".composer button", "grouped-5")
    finally:
        call(stack, "DELETE", f"/api/v1/providers/{made['id']}")

    assert shown == {}


async def test_the_key_that_sends_is_chosen_and_alt_n_begins_a_chat(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "kerstin")
    await page.visit(f"http://{stack.http}/settings/display")
    await page.click("label", "Ctrl Enter")
    shown = await problems_of(page)
    await page.run("document.activeElement.blur()")
    await page.press("?")
    await page.find("dialog tr", "Send at once, interrupting the turn")
    keys = await page.run("document.querySelector('dialog').innerText")
    await page.press("Escape")
    await page.visit(f"http://{stack.http}/")
    await written(page, "repeat after me: line")
    await page.until(f"{FIELD}.endsWith('\\n')")
    await page.press("Enter", "Control")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.click(".composer textarea")
    await page.ask("Input.dispatchKeyEvent", type="keyDown", key="n", code="KeyN", modifiers=1)
    await page.until("location.pathname === '/'")

    assert shown == []
    assert "Alt" in keys
