"""Finding by Ctrl+K, and the commands of a chat: fork, titles."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow

PROMPTS = "[...document.querySelectorAll('.user-bubble')].map((each) => each.innerText)"
OPTION = "dialog [role=option]"


async def test_one_field_finds_messages_files_chats_and_commands(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "fiona")
    await written(page, 'call: write_file {"path": "harvest.md", "content": "a"}')
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await written(page, "repeat after me: pumpernickel")
    await page.find(".assistant-message", "pumpernickel")
    await idle(page)
    chat = await page.run("location.pathname")
    await page.press("k", "Control")
    await page.until("document.activeElement.type === 'search'")
    await page.type("harvest")
    await page.find(f"{OPTION} code", "harvest.md")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog[open]')")
    await page.click("a", "Parley")
    await page.until("location.pathname === '/'")
    await page.press("k", "Control")
    await page.until("document.activeElement.type === 'search'")
    await page.type("pumpernickel")
    await page.find(f"{OPTION} mark", "pumpernickel")
    await page.click(OPTION, "repeat after me: pumpernickel")
    await page.until(f"location.pathname === '{chat}' && /^#m\\d+$/.test(location.hash)")
    await page.find(".user-message.is-target", "pumpernickel")
    await page.press("k", "Control")
    await page.until("document.activeElement.type === 'search'")
    await page.type("waits for me")
    await page.find(f"{OPTION}[aria-selected=true]", "What waits for me")
    await page.press("Enter")
    await page.until("location.pathname === '/waiting'")


async def test_a_chat_is_forked_at_a_message_and_renamed_and_a_refused_title_changes_nothing(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "frieda")
    for text in ("repeat after me: first", "repeat after me: second"):
        await written(page, text)
        await page.find(".user-bubble", text)
        await idle(page)
    origin = await page.run("location.pathname")
    await page.click(".user-message button", "More commands", place=0)
    await page.click("[role=menuitem]", "Fork from here")
    await page.click("dialog button", "Fork", place=-1)
    await page.until(f"location.pathname !== '{origin}' && {PROMPTS}.length === 1")
    await page.click(".bar button", "Commands of")
    await page.click("[role=menuitem]", "Rename")
    await page.run("document.querySelector('dialog input').select()")
    await page.type("A branch of thought")
    await page.click("dialog button", "Rename")
    await page.find(".bar-title", "A branch of thought")
    await page.click(".bar button", "Commands of")
    await page.click("[role=menuitem]", "Rename")
    await page.click("dialog button", "Propose one")
    # The scripted demo writes no titles.
    await page.find("dialog [role=alert]", "title")
    kept = await page.run("document.querySelector('dialog input').value")
    # Refusals are told on the console; nothing else may be.
    page.said[:] = [line for line in page.said if "the server responded with a status" not in line]

    assert kept == "A branch of thought"
    assert await page.run(PROMPTS) == ["repeat after me: first"]
