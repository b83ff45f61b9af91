"""Every screen is accessible, in both colours, on a phone and at 200 %."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_of
from support.stack.page_session import idle, written

pytestmark = pytest.mark.slow

OVERFLOW = "document.documentElement.scrollWidth - innerWidth"


async def test_every_screen_is_accessible_in_both_colours_and_fits_a_phone(
    stack: LocalStack, page: Page
) -> None:
    await page.click("button", "Plan")
    await written(page, "Decide about the release")
    await page.see("Which file should I write?")
    await page.until("location.pathname.startsWith('/chats/')")
    asked = await page.run("location.pathname")
    await page.click("a", "Parley")
    await written(page, 'run: ls /none\ncall: write_file {"path": "a", "content": "b"}')
    await page.until(f"location.pathname.startsWith('/chats/') && location.pathname !== '{asked}'")
    await idle(page)
    done = await page.run("location.pathname")
    found = {}
    for address, landmark in (
        ("/", "textarea"),
        (asked, ".action"),
        (done, ".card"),
        ("/waiting", ".action"),
        ("/settings", ".form"),
        ("/settings/display", ".choices"),
        ("/settings/api-keys", ".table-empty, .table"),
        ("/chats/00000000-0000-4000-8000-000000000000", ".state"),
        ("/sign-in", "input[name=login]"),
    ):
        await page.resize(1280, 800)
        await page.visit(f"http://{stack.http}{address}")
        await page.find(landmark)
        await page.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
        await page.until("document.documentElement.dataset.theme !== 'dark'")
        found[f"{address} light"] = await problems_of(page)
        await page.resize(640, 400)
        found[f"{address} at 200 %"] = [["overflow"]] * (await page.run(OVERFLOW) > 0)
        await page.resize(360, 740, mobile=True)
        await page.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
        await page.until("document.documentElement.dataset.theme === 'dark'")
        await page.find(landmark)
        found[f"{address} dark phone"] = await problems_of(page)
        found[f"{address} phone width"] = [["overflow"]] * (await page.run(OVERFLOW) > 0)

    assert {name: each for name, each in found.items() if each} == {}


async def test_everything_is_reached_by_keys(stack: LocalStack, page: Page) -> None:
    await written(page, "repeat after me: by keys")
    await page.until("document.querySelector('.assistant-message')?.innerText === 'by keys'")
    await idle(page)
    await page.run("document.activeElement.blur()")
    await page.press("?")
    await page.see("Show the keys")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog[open]')")
    await page.press("w")
    await page.until("location.pathname === '/waiting'")
    await page.press("]")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.press("k", "Control")
    await page.until("document.activeElement.type === 'search'")
    await page.type("by keys")
    await page.find("dialog [role=option] mark", "keys")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog[open]')")
    await page.run("document.activeElement.blur()")
    await page.press("g")
    await page.until("document.activeElement.tagName === 'TEXTAREA'")
    await page.press("ArrowUp")
    await page.until("document.activeElement.value === 'repeat after me: by keys'")
    await page.press("Escape")
    await page.type("/comp")
    await page.find("[role=option]", "/compact")
    marked = "document.activeElement.getAttribute('aria-activedescendant')"
    await page.until(f"document.getElementById({marked})?.innerText.startsWith('/compact')")
    problems = await problems_of(page)
    await page.press("Escape")
    await page.until("!document.querySelector('[role=option]')")
    kept = await page.run("document.activeElement.value")
    await page.type("a")
    await page.find("[role=option]", "/compact")

    assert problems == []
    assert kept == "/comp"


async def test_the_menu_of_the_person_leads_to_the_keys(stack: LocalStack, page: Page) -> None:
    await page.click(".side-user")
    await page.click("[role=menuitem]", "Keys")
    for words in ("Resources of MCP servers", "Paste a long text as text", "Move a queued message"):
        await page.find(".keys td", words)
    assert await problems_of(page) == []


async def test_on_a_phone_every_state_leads_to_the_chats(stack: LocalStack, page: Page) -> None:
    await page.resize(360, 740, mobile=True)
    for address, words in (
        ("/chats/00000000-0000-4000-8000-000000000000", "This chat is not there"),
        ("/races/00000000-0000-4000-8000-000000000000", "This race is not there"),
        ("/settings/none", "There is no such section"),
        ("/admin", "Administrators see this page."),
        ("/waiting", "What waits for you"),
    ):
        await page.visit(f"http://{stack.http}{address}")
        await page.see(words)
        await page.click("button", "Show the list of chats")
        await page.find("nav[aria-label=Chats] button", "New chat")
        # Without a pointer the first heading says what this is.
        titles = await page.run("document.querySelectorAll('h1').length")
        assert titles == 1, address


async def test_what_is_loaded_later_does_not_move_the_composer_of_the_start(
    stack: LocalStack, page: Page
) -> None:
    for width, height in ((1280, 800), (390, 720)):
        await page.resize(width, height, mobile=width == 390)
        await page.visit(f"http://{stack.http}/")
        await page.find(".start .notice")
        top = "document.querySelector('.start .composer').getBoundingClientRect().top"
        with_hint = await page.run(top)
        await page.run("document.querySelector('.start .notice').style.display = 'none'")
        assert await page.run(top) == with_hint
