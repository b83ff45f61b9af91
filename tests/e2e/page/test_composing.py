"""The composer: files, drafts that survive a reload, and commands."""

import pytest

from support.faults.points import FaultPoints
from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, write_first, written

pytestmark = pytest.mark.slow

PASTE = """
    (() => {
        const data = new DataTransfer();
        data.setData('text/plain', 'a line of a long log\\n'.repeat(60));
        const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true});
        document.querySelector('.composer textarea').dispatchEvent(event);
    })()
"""
LINE = "[...document.querySelectorAll('.summary-rule')].map((each) => each.innerText)"
#: Hold uploads back until they are let go, and have them refused then.
HOLDING = """
    (() => {
        const {open, send} = XMLHttpRequest.prototype;
        const held = [];
        XMLHttpRequest.prototype.open = function (method, address, ...rest) {
            this.isUpload = address.startsWith('/api/v1/files');
            return open.call(this, method, this.isUpload ? '/api/v1/none' : address, ...rest);
        };
        XMLHttpRequest.prototype.send = function (body) {
            if (this.isUpload) held.push(() => send.call(this, body));
            else send.call(this, body);
        };
        window.heldUploads = held;
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


async def test_an_attached_text_is_read_before_and_after_it_was_sent(
    stack: LocalStack, page: Page
) -> None:
    await page.click(".composer textarea")
    await page.run(PASTE)
    await page.click(".composer .file-chip button", "Read pasted.txt")
    await page.find("dialog .text-preview", "a line of a long log")
    problems = await problems_in_all_looks(page)
    await page.click("dialog button", "Close")
    await page.until("!document.querySelector('dialog')")
    await written(page, "repeat after me: read it")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.click(".user-bubble .file-chip button", "Read pasted.txt")
    await page.find("dialog .text-preview", "a line of a long log")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog')")
    await idle(page)

    assert problems == {}


async def test_pasted_text_that_is_not_stored_goes_back_into_the_message_of_a_composer_that_is_gone(
    stack: LocalStack, page: Page
) -> None:
    await page.run(HOLDING)
    await page.click(".composer textarea")
    await page.type("Read this:")
    await page.run(PASTE)
    await page.find(".composer .tile.is-pending")
    await page.until("window.heldUploads.length === 1")
    # Leave the composer while its upload is on the way.
    await page.run("history.pushState(null, '', '/waiting')")
    await page.until("!document.querySelector('.composer')")
    await page.run("window.heldUploads.pop()()")
    await page.find(".toasts", "The pasted text was not stored as a file")
    await page.run("history.pushState(null, '', '/')")
    await page.find(".composer textarea", "a line of a long log")
    text = await page.run("document.querySelector('.composer textarea').value")
    tiles = await page.run("document.querySelectorAll('.composer .tile').length")

    assert text.startswith("Read this:\n\na line of a long log\n")
    assert tiles == 0


async def test_a_summary_is_shown_before_the_turn_that_made_it_is_over(
    stack: LocalStack, page: Page, points: FaultPoints
) -> None:
    await written(page, "repeat after me: one")
    await page.find(".assistant-message", "one")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    points.arm("CommitCompaction.before", subjects=(chat_id,))
    await page.click(".composer textarea")
    await page.type("/compact")
    await page.find("[role=option]", "/compact")
    await page.press("Enter")
    await page.find(".summary-rule", "Summarized")
    status = call(stack, "GET", f"/api/v1/chats/{chat_id}", login="paula")["status"]
    lines = await page.run("document.querySelectorAll('.summary-rule').length")
    points.release("CommitCompaction.before")
    await idle(page)
    await page.until("document.querySelectorAll('.summary-rule').length === 1")

    assert (status, lines) == ("running", 1)


async def test_a_full_context_is_summarised_before_the_page_shows_the_end_of_the_turn(
    stack: LocalStack, page: Page, points: FaultPoints
) -> None:
    # The summary repeats the beginning of what was said, so the size is not said in it again.
    await write_first(page, f"repeat after me: {'one ' * 600}")
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    path = f"/api/v1/chats/{chat_id}"
    points.arm("CommitCompaction.before", subjects=(chat_id,))
    await written(page, "use 95 tokens of 100")
    await page.find(".summary-line summary", "Above this line the model has a summary")
    line = await page.run(LINE)
    status = call(stack, "GET", path, login="paula")["status"]
    is_working = await page.run("document.querySelectorAll('[aria-label=Stop]').length")
    points.release("CommitCompaction.before")
    await page.until("!document.querySelector('[aria-label=Stop]')")
    lines = await page.run(LINE)
    await idle(page)
    await page.click(".summary-line summary", "Above this line the model has a summary")
    await page.find(".summary-line .prose", "The user said")

    # Of the threshold, so nothing says that it was asked for.
    assert (line, status, is_working) == (["Summarized"], "running", 1)
    assert lines == ["Summarized"]
    assert call(stack, "GET", path, login="paula")["status"] == "waiting"
    await written(page, "repeat after me: two")
    await page.find(".assistant-message", "two")
    await idle(page)
    assert await page.run(LINE) == ["Summarized"]


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
