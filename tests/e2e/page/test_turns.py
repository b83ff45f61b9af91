"""Turns at the page: the files that each changed, and where its time went."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_of
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
    problems = await problems_of(page)
    await page.click(".dialog button", "Close")
    await page.until("!document.querySelector('.dialog')")

    assert problems == []
    assert [line.split()[:3] for line in listed] == [
        ["a.txt", "modified", "+1"],
        ["b.txt", "created", "+1"],
    ]


async def test_a_turn_is_shown_as_a_time_line_of_model_calls_and_tools(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "timea")
    await written(page, "run: sleep 1.2")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.find(".assistant-message .prose", "That is all")
    await idle(page)
    await page.click(".user-message button", "More commands of the message")
    await page.click("[role=menuitem]", "Time line of this turn")
    await page.find(".turn-times .is-tool", "execute")
    kinds = await page.run(
        "[...document.querySelectorAll('.turn-times tr')].map((e) => e.className)"
    )
    took = await page.run("document.querySelector('.turn-times .is-tool .turn-number').innerText")
    bar = await page.run(
        "(() => { const box = (each) => document.querySelector(each).getBoundingClientRect().width;"
        " return box('.turn-times .is-tool rect') / box('.turn-times .is-tool svg'); })()"
    )

    assert await problems_of(page) == []
    assert [each for each in kinds if each != "is-wait"] == ["is-model", "is-tool", "is-model"]
    assert float(took.split()[0]) >= 1.2
    assert 0.3 < bar <= 1


async def test_a_command_in_the_background_is_followed_in_its_card(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "folke")
    await written(
        page,
        'call: execute {"command": "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done;'
        ' exit 3", "run_in_background": true}',
    )
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.click(".assistant-message button", "Follow")
    await page.find(".assistant-message .terminal-output", "begun")
    await written(page, "run: touch go")
    await page.find(".assistant-message .terminal-output", "done")
    await page.see("It ended with exit code 3.")
    whole = "document.querySelector('.assistant-message .terminal-output').innerText"
    assert (await page.run(whole)).split() == ["begun", "done"]
