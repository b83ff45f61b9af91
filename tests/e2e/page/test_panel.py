"""The panel beside a chat: files, changes and processes of its workspace."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


async def test_files_changes_and_processes_of_the_workspace_are_shown(
    stack: LocalStack, page: Page
) -> None:
    await page.visit(f"http://{stack.http}/")
    await page.click("textarea")
    await page.type("run: git init -q . && echo hello panel > a.txt && mkdir d && echo > d/b.txt")
    await page.press("Enter")
    await page.see("That is all the demo does.")
    await page.click("button", "Workspace of the chat")
    await page.click("[role=tab]", "Files")
    await page.click(".entry", "d")
    await page.find(".entry", "b.txt")
    await page.click("button", "Up")
    await page.click(".entry", "a.txt")
    await page.see("hello panel")
    await page.click("[role=tab]", "Changes")
    await page.find("[role=region]", "Changes of a.txt")
    await page.click("[role=tab]", "Processes")
    await page.see("exit 0")
    # The parts of the page scroll, never the whole of it.
    overflow = "document.documentElement.scrollHeight - innerHeight"
    assert await page.run(overflow) == 0
    await page.click("[role=tab]", "Summary")
    await page.see("Input tokens")
    # The next visit shows it again, until it is closed.
    await page.visit(await page.run("location.href"))
    await page.find("[role=tab]", "Changes")
    await page.click("button", "Close the panel")
    await page.until("!document.querySelector('.panel')")
