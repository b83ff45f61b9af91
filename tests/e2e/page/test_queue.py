"""The queue of a chat at the page: edited, moved, sent now, removed."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

QUEUED = "[...document.querySelectorAll('.queue-row .queue-text')].map((each) => each.innerText)"
PROMPTS = "[...document.querySelectorAll('.user-bubble')].map((each) => each.innerText)"
DRAG = """
    (() => {
        const rows = [...document.querySelectorAll('.queue-row')];
        const data = new DataTransfer();
        const tell = (row, type) => row.dispatchEvent(
            new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        tell(rows[2], 'dragstart');
        tell(rows[0], 'dragover');
        tell(rows[0], 'drop');
    })()
"""


async def test_a_queue_is_edited_moved_and_cut_and_its_first_message_is_sent_now(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "quentin")
    await written(page, "count to 3000")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.find(".working, .status-dot.is-running")
    for name in ("one", "two", "three"):
        await written(page, f"repeat after me: {name}")
        await page.until(f"{QUEUED}.at(-1) === 'repeat after me: {name}'")
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]

    def stored() -> list[str]:
        found = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages", login="quentin")
        return [each["content"][0]["text"][17:] for each in found["queued_messages"]]

    await page.run(DRAG)
    await page.until(f"{QUEUED}.join().startsWith('repeat after me: three')")
    await page.run("document.querySelector('.queue-row .queue-text').focus()")
    await page.press("ArrowDown", "Alt")
    await page.until(f"{QUEUED}[1] === 'repeat after me: three'")
    await page.click(".queue-row button", "Edit the queued message", place=0)
    await page.run("document.querySelector('.queue-edit textarea').select()")
    await page.type("repeat after me: first")
    await page.press("Enter")
    await page.until(f"{QUEUED}[0] === 'repeat after me: first'")
    await page.click(".queue-row button", "Remove from the queue", place=-1)
    await page.until(f"{QUEUED}.length === 2")
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.until(f"{QUEUED}.length === 2")
    changed = stored()
    await page.click(".queue-row button", "Send now", place=1)
    await page.until(f"{PROMPTS}.length === 3")
    await idle(page)

    assert changed == ["first", "three"]
    assert await page.run(PROMPTS) == [
        "count to 3000",
        "repeat after me: three",
        "repeat after me: first",
    ]


async def test_a_message_written_while_a_turn_runs_can_interrupt_it(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "quirin")
    await written(page, "count to 3000")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.find(".working, .status-dot.is-running")
    await page.click(".composer textarea")
    await page.type("repeat after me: at once")
    await page.click(".composer button", "Interrupt and send")
    await page.until(
        "[...document.querySelectorAll('.assistant-message')].at(-1)?.innerText === 'at once'"
    )
    await idle(page)
    await page.press("ArrowUp")
    await page.until(
        "document.querySelector('.composer textarea').value === 'repeat after me: at once'"
    )
    assert await page.run(PROMPTS) == ["count to 3000", "repeat after me: at once"]
