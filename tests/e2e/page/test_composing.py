"""The composer: files, drafts that survive a reload, and commands."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, written

pytestmark = pytest.mark.slow

PASTE = """
    (() => {
        const data = new DataTransfer();
        data.setData('text/plain', 'a line of a long log\\n'.repeat(60));
        const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true});
        document.querySelector('.composer textarea').dispatchEvent(event);
    })()
"""


async def test_a_long_paste_becomes_a_file_and_a_draft_survives_a_reload(
    stack: LocalStack, page: Page
) -> None:
    await page.click(".composer textarea")
    await page.type("repeat after me: what is in the file")
    await page.run(PASTE)
    await page.find(".composer .file-chip", "pasted.txt")
    await page.visit(f"http://{stack.http}/")
    await page.find(".composer .file-chip", "pasted.txt")
    await page.find(".composer textarea", "what is in the file")
    await page.click(".composer textarea")
    await page.press("Enter")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.find(".user-bubble .file-chip", "pasted.txt")
    await page.find(".assistant-message", "what is in the file")
    await idle(page)
    await page.visit(f"http://{stack.http}/")
    await page.find(".composer textarea")

    assert await page.run("document.querySelector('.composer textarea').value") == ""
    assert await page.run("document.querySelectorAll('.composer .file-chip').length") == 0


async def test_a_command_summarises_the_chat_and_the_line_says_what_the_model_has(
    stack: LocalStack, page: Page
) -> None:
    await written(page, "repeat after me: one")
    await page.find(".assistant-message", "one")
    await idle(page)
    await page.click(".composer textarea")
    await page.type("/compact")
    await page.find("[role=option]", "/compact")
    await page.press("Enter")
    await page.find(".summary-rule", "Summarized (on request)")
    await page.click(".summary-line summary", "Above this line the model has a summary")
    await page.find(".summary-line .prose", "The user said")
    await idle(page)
    await written(page, "repeat after me: two")
    await page.find(".assistant-message", "two")
