"""Files that are dropped onto the composer, and an edit that is left."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

DROP = """
    (() => {
        const data = new DataTransfer();
        data.items.add(new File(['what was dropped'], 'dropped.txt', {type: 'text/plain'}));
        const tell = (type) => document.querySelector('.composer').dispatchEvent(
            new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        tell('dragover');
        tell('drop');
    })()
"""
TYPED = "document.querySelector('.composer textarea').value"


async def test_a_dropped_file_goes_with_the_message_and_escape_leaves_an_edit_of_it(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "dagny")
    await page.find(".composer textarea")
    await page.run(DROP)
    await page.find(".composer .file-chip", "dropped.txt")
    await written(page, "repeat after me: with a file")
    await page.find(".user-bubble .file-chip", "dropped.txt")
    await page.find(".assistant-message", "with a file")
    await idle(page)
    await page.click(".composer textarea")
    await page.type("a draft")
    await page.click(".user-message button", "Edit and run again")
    await page.see("Editing.")
    edited = await page.run(TYPED)
    await page.press("Escape")
    await page.until("!document.body.innerText.includes('Editing.')")
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    messages = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages", login="dagny")["messages"]
    (said,) = [each for each in messages if each["role"] == "user"]

    assert edited == "repeat after me: with a file"
    assert await page.run(TYPED) == "a draft"
    assert [part["type"] for part in said["content"]] in (["file", "text"], ["text", "file"])
