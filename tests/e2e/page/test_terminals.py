"""Terminals at the page: shells of a person, and the terminal of a process of the agent."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, open_panel, sign_in, write_first, written

pytestmark = pytest.mark.slow

FRAME = "document.querySelector('.terminal-frame')?.contentDocument"
SHOWN = f"({FRAME}?.querySelector('.xterm-rows')?.innerText ?? '').replaceAll('\\u00a0', ' ')"
AGENTS = (
    'call: execute {"command": "echo ready; read line; echo got $line; sleep 600", "tty": true, '
    '"run_in_background": true}'
)


@pytest.fixture
async def opened(stack: LocalStack, chromium: Browser) -> Page:
    """Give a tab of a user of these tests."""
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "tara")
    return page


async def typed(page: Page, text: str) -> None:
    """Type a line into the terminal that is shown."""
    await page.until(f"{FRAME}?.body?.dataset.state === 'open'")
    await page.run(f"{FRAME}.querySelector('textarea').focus()")
    for each in text:
        await page.ask("Input.dispatchKeyEvent", type="keyDown", key=each, text=each)
        await page.ask("Input.dispatchKeyEvent", type="keyUp", key=each)
    await page.press("Enter")


async def test_several_shells_are_opened_resized_and_reattached_at_the_page(
    stack: LocalStack, opened: Page
) -> None:
    page = opened
    await write_first(page, "run: echo begun")
    await open_panel(page, "Terminals")
    await page.click("button", "New terminal")
    await typed(page, "echo one$((1+1))")
    await page.until(f"{SHOWN}.includes('one2')")
    await page.click("button", "New terminal")
    await page.find("button[aria-pressed=true]", "Shell 2")
    await typed(page, "echo two$((1+1)); stty size")
    await page.until(f"{SHOWN}.includes('two2')")
    await page.until(f"/^\\d+ \\d+$/m.test({SHOWN})")
    wide = await page.run(f"{SHOWN}.match(/^\\d+ (\\d+)$/m)[1]")
    await page.resize(1000, 800)
    await typed(page, "clear; stty size; echo again")
    await page.until(f"/^again$/m.test({SHOWN})")
    narrow = await page.run(f"{SHOWN}.match(/^\\d+ (\\d+)$/m)[1]")
    # What the first shell said is there after another visit.
    await page.visit(await page.run("location.href"))
    await page.click("[role=tab]", "Terminals")
    await page.click("button", "Shell 1")
    await page.until(f"{SHOWN}.includes('one2')")
    await typed(page, "exit 3")
    await page.until(f"{FRAME}?.body?.innerText.includes('ended with exit code 3')")

    assert int(narrow) < int(wide)


async def test_the_keyboard_of_the_agents_process_is_taken_over_and_given_back_with_a_note(
    stack: LocalStack, opened: Page
) -> None:
    page = opened
    await page.visit(f"http://{stack.http}/")
    await written(page, AGENTS)
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await open_panel(page, "Terminals")
    await page.see("You are looking only.")
    await page.until(f"{SHOWN}.includes('ready')")
    await page.click("button", "Take over")
    await page.see("The keyboard is yours.")
    await typed(page, "a secret word")
    await page.until(f"{SHOWN}.includes('got a secret word')")
    await page.click("button", "Give it back")
    await page.click(".dialog textarea")
    await page.type("The word is in.")
    await page.click(".dialog button", "Give back and tell")
    await page.see("You are looking only.")
    await page.find(".user-bubble", "The word is in.")

    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    messages = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages", login="tara")["messages"]
    told = [each for each in messages if each["role"] == "user"]
    processes = call(stack, "GET", f"/api/v1/chats/{chat_id}/processes", login="tara")["items"]
    newest = max(told, key=lambda each: each["id"])["content"][0]["text"]
    assert newest == (
        f"I typed into the terminal of process {processes[0]['id']} and give it back to you. "
        "The word is in."
    )
