"""Agents at the page: a live tree in the panel, and a chat that waits for them and not for me."""

import json

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

#: Buttons of rows that lie over a title, or over a time that is shown.
OVERLAPS = """
    [...document.querySelectorAll('.chat-row')].flatMap((row) => {
        const boxes = (selector) => [...row.querySelectorAll(`:scope > ${selector}`)]
            .filter((each) => getComputedStyle(each).visibility === 'visible')
            .filter((each) => !each.closest('.chat-row-menu')
                || getComputedStyle(each.closest('.chat-row-menu')).opacity !== '0')
            .map((each) => each.getBoundingClientRect());
        const texts = boxes('.chat-row-link > .chat-row-title, :scope > .chat-row-link > time');
        return boxes('.chat-row-actions button').flatMap((button) => texts.filter((text) =>
            button.left < text.right && text.left < button.right
            && button.top < text.bottom && text.top < button.bottom
        ).map((text) => `${button.left} < ${text.right}`));
    })
"""

#: A browser without a screen has no pointer; take away the rules for that.
WITH_A_POINTER = """
    [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]
        .filter((rule) => rule.conditionText?.includes('hover: none'))
        .map((rule) => sheet.deleteRule([...sheet.cssRules].indexOf(rule)))).length
"""


async def test_a_chat_waits_for_its_agents_and_not_for_a_person_and_the_panel_shows_their_tree(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "agatha")
    slow = json.dumps({"prompt": "count to 2000", "name": "Counter"})
    short = json.dumps({"prompt": "repeat after me: here", "name": "Speaker"})
    await written(
        page, f"call: spawn_agent {slow}\nand call: spawn_agent {short}\ncall: wait_agents {{}}"
    )
    await page.until("location.pathname.startsWith('/chats/')")
    origin = await page.run("location.pathname")
    await page.find(".action", "Waits for 2 agents")
    await page.find(".chat-row-line", "Waits for its agents")
    waiting_for_me = await page.run("!!document.querySelector('.is-waiting-for-me')")
    placeholder = await page.run("document.querySelector('.composer textarea').placeholder")
    await page.click(".bar button", "Workspace of the chat")
    await page.click("[role=tab]", "Agents")
    await page.find(".panel .agent-row", "is working")
    await page.find(".panel .agent-row", "has ended")
    await page.find(".panel .agent-facts", "Scripted demo")
    await page.click(".panel .agent-row", "Counter")
    await page.until(f"location.pathname !== '{origin}'")
    await page.find(".user-bubble", "count to 2000")
    await page.press("Escape")
    await page.click(".panel a", "spawn_agent")
    await page.until(f"location.pathname === '{origin}'")
    await idle(page)
    await page.click(".card-head", "Waited for agents")
    await page.find(".agent-report", "here")

    assert waiting_for_me is False
    assert placeholder == "Write on; it is sent after this turn"


async def test_changes_of_an_agent_in_a_fork_are_looked_at_and_applied_in_the_panel(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "astrid")
    fork = json.dumps(
        {
            "prompt": "run: printf 'child\\n' > shared; echo new > added",
            "name": "Writer",
            "isolation": "fork",
        }
    )
    beside = json.dumps({"prompt": "repeat after me: nothing", "name": "Speaker"})
    await written(
        page,
        f"run: echo parent > shared\ncall: spawn_agent {fork}\n"
        f"call: spawn_agent {beside}\ncall: wait_agents {{}}",
    )
    await page.until("location.pathname.startsWith('/chats/')")
    path = "/api/v1" + str(await page.run("location.pathname"))
    await idle(page)
    await page.click(".bar button", "Workspace of the chat")
    await page.click("[role=tab]", "Agents")
    await page.find(".panel .agent-row", "Speaker")
    await page.find(".panel .agent-actions button", "Apply the changes of Writer")
    # Only the agent in a fork has changes of its own, and no button is inside of a link.
    offered = await page.run("document.querySelectorAll('.panel .agent-actions').length")
    nested = await page.run("document.querySelectorAll('.panel a button').length")
    tree = await problems_in_all_looks(page)
    # The buttons follow the row in the order of the keyboard.
    await page.run(
        "[...document.querySelectorAll('.panel .agent-row')]"
        ".find((each) => each.innerText.includes('Writer')).focus()"
    )
    await page.press("Tab")
    focused = await page.run("document.activeElement.getAttribute('aria-label')")
    await page.press("Enter")
    await page.find("dialog .diff .is-added", "child")
    await page.find("dialog summary", "added")
    changes = await problems_in_all_looks(page)
    await page.click("dialog button", "Close")
    await page.until("!document.querySelector('dialog')")
    before = call(stack, "GET", f"{path}/files", login="astrid")["items"]
    await page.click(".panel .agent-actions button", "Apply the changes of Writer")
    asked = await problems_in_all_looks(page)
    await page.click("dialog button", "Apply")
    await page.find("dialog .notice", "2 files were written")
    await page.click("dialog button", "Close")
    await page.until("!document.querySelector('dialog')")
    await page.click(".panel .agent-actions button", "Changes of Writer")
    await page.find("dialog", "All changes were applied.")
    await page.find("dialog section", "2 files")
    await page.find("dialog section .diff .is-added", "child")
    applied = await problems_in_all_looks(page)
    await page.click("dialog button", "Close")
    await page.until("!document.querySelector('dialog')")
    await page.click("[role=tab]", "Files")
    await page.find(".panel .entry", "added")
    await page.click(".panel .entry", "shared")
    await page.find(".panel .preview", "child")

    assert (offered, nested) == (1, 0)
    assert focused == "Changes of Writer"
    assert (tree, changes, asked, applied) == ({}, {}, {}, {})
    assert "added" not in [each["path"] for each in before]


async def test_the_arrow_of_a_chat_with_agents_lies_beside_its_title(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "arvid")
    long = json.dumps(
        {"prompt": "repeat after me: a sentence that is longer than the list is wide"}
    )
    await written(page, f"call: spawn_agent {long}")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.find(".chat-row.has-below button", "Show 1 chat below")
    overlaps = [await page.run(OVERLAPS)]
    await page.click(".chat-row.has-below button", "Show 1 chat below")
    await page.find(".side-rows.is-below .chat-row")
    overlaps.append(await page.run(OVERLAPS))
    changed = await page.run(WITH_A_POINTER)
    overlaps.append(await page.run(OVERLAPS))
    await page.click(".chat-row.has-below > .chat-row-link")
    menu = "getComputedStyle(document.querySelector('.chat-row-menu')).opacity"
    shown = await page.run(menu)
    overlaps.append(await page.run(OVERLAPS))

    assert changed > 0
    assert shown == "1"
    assert overlaps == [[], [], [], []]
