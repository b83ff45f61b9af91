"""The counts of changed files and lines in the list of chats, while commands change a work tree."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, write_first, written

pytestmark = pytest.mark.slow

MINUS = "\N{MINUS SIGN}"
FACTS = """
    (() => {
        const facts = document.querySelector('.side [aria-current=page] .chat-row-facts span');
        return facts ? [facts.innerText.replace(/\\s+/g, ' ').trim(), facts.title] : [];
    })()
"""


async def shows(page: Page, *facts: str) -> None:
    """Wait until the row of the open chat has these counts."""
    await page.until(f"JSON.stringify({FACTS}) === JSON.stringify({list(facts)})")


async def test_the_counts_of_a_row_follow_what_commands_change(
    stack: LocalStack, page: Page
) -> None:
    await write_first(page, "run: git init -qb main && printf 'one\\ntwo\\n' > a.txt")
    await shows(page, f"main +2 {MINUS}0", "1 file changed")
    await page.run("window.isTheSamePage = true")
    await written(page, "run: git add . && git -c user.name=A -c user.email=a@b commit -qm one")
    await shows(page, f"main +0 {MINUS}0", "0 files changed")
    await written(page, "run: printf 'three\\n' > a.txt; echo new > b.txt")
    await shows(page, f"main +2 {MINUS}2", "2 files changed")
    await idle(page)

    assert await page.run("window.isTheSamePage") is True
