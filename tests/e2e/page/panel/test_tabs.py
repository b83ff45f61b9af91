"""The tabs of the panel: kept by chat, and one for those who look for a cause."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import begun, idle, open_panel, write_first, written

pytestmark = pytest.mark.slow

OPEN = "document.querySelector('[role=tab][aria-selected=true]')?.innerText"
TABS = "[...document.querySelectorAll('[role=tab]')].map((each) => each.innerText)"

CALLS = """
    document.querySelectorAll('.turn-run')[1]
        .querySelectorAll("[aria-label='Calls of the model'] tbody tr").length
"""


async def test_each_chat_keeps_its_tabs(stack: LocalStack, chromium: Browser) -> None:
    page = await begun(chromium, stack, "tabea", "repeat after me: the first")
    first = await page.run("location.href")
    await open_panel(page, "Summary")
    await page.click(".panel button", "Choose the tabs")
    await page.click("[role=menuitemcheckbox]", "Goal")
    await page.until(f"!{TABS}.includes('Goal')")
    await page.visit(f"http://{stack.http}/")
    await write_first(page, "repeat after me: the second")
    await page.find(".panel [role=tab]", "Goal")
    await page.click("[role=tab]", "Files")
    await page.visit(first)
    await page.until(f"{OPEN} === 'Summary'")
    kept = await page.run(TABS)
    await page.click(".panel button", "Choose the tabs")
    shown = await problems_in_all_looks(page)

    assert "Goal" not in kept
    assert shown == {}


async def test_tabs_keep_the_order_to_which_they_were_moved(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "ottilie", "repeat after me: in order")
    await open_panel(page, "Files")
    await page.press("ArrowLeft", "Alt")
    await page.until(f"{TABS}[0] === 'Files'")
    await page.visit(await page.run("location.href"))
    await page.find(".panel [role=tab]", "Files")

    assert (await page.run(TABS))[:3] == ["Files", "Changes", "Processes"]


async def test_a_tab_shows_what_each_turn_called_used_and_took(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "debora", "run: echo looked at")
    await written(page, "repeat after me: and again")
    await page.find(".assistant-message", "and again")
    await idle(page)
    await open_panel(page, "Debug")
    await page.until("document.querySelectorAll('.turn-run').length === 2")
    await page.find(".turn-run summary", "repeat after me: and again")
    await page.click(".turn-run summary", "run: echo looked at")
    await page.find("[aria-label='Calls of tools'] td", "execute")
    calls = await page.run(CALLS)
    shown = await problems_in_all_looks(page)
    await page.click(".turn-run[open] button", "Time line")
    await page.find(".dialog", "Time line of this turn")

    assert calls == 2
    assert shown == {}


async def test_the_panel_has_all_the_place_and_the_chat_stays_as_it_was(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "weite", "repeat after me: beside it")
    await page.run("document.activeElement.blur()")
    await page.press("p")
    await page.find(".panel")
    chat = "JSON.stringify(document.querySelector('.chat').getBoundingClientRect())"
    before = await page.run(chat)
    await page.press("E", "Control", "Shift")
    wide = "document.querySelector('.panel').getBoundingClientRect().left"
    left = "document.querySelector('.chat-with-panel').getBoundingClientRect().left"
    await page.until(f"{wide} === {left}")
    hidden = await page.run("getComputedStyle(document.querySelector('.chat')).visibility")
    expanded = await problems_in_all_looks(page)
    during = await page.run(chat)
    await page.click(".panel button", "Show the chat beside the panel")
    await page.until(f"{wide} > {left}")
    await page.press("p")
    await page.until("!document.querySelector('.panel')")

    assert hidden == "hidden"
    assert during == before
    assert expanded == {}


async def test_no_tab_of_a_new_chat_asks_for_what_is_not_there(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "nadja", "run: echo no repository")
    await open_panel(page)
    page.refusals.clear()
    selected = ".panel [role=tab][aria-selected=true]"
    for tab in await page.run(TABS):
        await page.click(".panel [role=tab]", tab)
        await page.find(selected, tab)
        # Nothing is loading any more.
        await page.until("!document.querySelector('.panel .skeleton')")
    await page.click("[role=tab]", "Checkpoints")
    await page.find(".panel-note", "in no git repository yet")
    await page.click("[role=tab]", "Goal")
    await page.find(".panel label", "What to achieve")
    assert page.refusals == []
