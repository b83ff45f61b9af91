"""Turns at the page: the files that each changed, as it left them."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow


async def test_the_files_of_a_turn_are_shown_as_it_found_and_left_them(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "turid")
    await written(page, "run: echo first > a.txt")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await written(page, "run: echo second >> a.txt; echo new > b.txt")
    await page.until("document.querySelectorAll('.assistant-message .prose').length === 2")
    await idle(page)
    await written(page, "run: echo third > a.txt; rm b.txt")
    await page.until("document.querySelectorAll('.assistant-message .prose').length === 3")
    await idle(page)
    await page.click(".user-message button", "More commands of the message", place=1)
    await page.click("[role=menuitem]", "Files that this turn changed")
    await page.find(".dialog .diff .is-added", "second")
    listed = await page.run(
        "[...document.querySelectorAll('.dialog summary')].map((each) => each.innerText)"
    )
    await page.click(".dialog button", "Before the turn")
    await page.until("document.querySelector('.dialog .preview')?.innerText === 'first\\n'")
    await page.click(".dialog button", "After the turn")
    await page.find(".dialog .preview", "second")
    await page.click(".dialog button", "After the turn", place=1)
    await page.until("document.querySelectorAll('.dialog .preview')[1]?.innerText === 'new\\n'")
    await page.click(".dialog button", "Close")
    await page.until("!document.querySelector('.dialog')")

    assert [line.split()[:3] for line in listed] == [
        ["a.txt", "modified", "+1"],
        ["b.txt", "created", "+1"],
    ]
