"""What is done with a chat from its row: pin by drag, export, archive, take back, delete."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

TITLES = "[...document.querySelectorAll('.chat-row-title bdi')].map((each) => each.innerText)"
PINNED = "document.querySelector('.side h2')?.textContent.includes('Pinned')"
#: Drags the last chat of the list onto the first one.
DRAG = """
    (() => {
        const rows = [...document.querySelectorAll('.chat-row-link')];
        const data = new DataTransfer();
        const tell = (row, type) => row.dispatchEvent(
            new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        tell(rows.at(-1), 'dragstart');
        tell(rows[0], 'dragover');
        tell(rows[0], 'drop');
    })()
"""


async def test_a_chat_is_pinned_by_drag_exported_archived_taken_back_and_deleted(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "roderich")
    for title in ("First", "Second"):
        said = [{"type": "text", "text": f"repeat after me: {title}"}]
        call(stack, "POST", "/api/v1/chats", {"content": said, "title": title}, login="roderich")
    await page.find(".chat-row-title", "Second")
    await idle(page)
    await page.click(".chat-row-link", "Second")
    await page.click(".bar button", "Commands of")
    await page.click("[role=menuitem]", "Pin")
    await page.until(PINNED)
    await page.run(DRAG)
    await page.until(f"{TITLES}.join() === 'First,Second'")
    chats = call(stack, "GET", "/api/v1/chats", login="roderich")["items"]
    pins = {each["title"]: each["pin_order"] for each in chats}

    second = next(each["id"] for each in chats if each["title"] == "Second")
    exported = await page.run(
        f"fetch('/api/v1/chats/{second}/export?format=md').then((answer) => answer.text())"
    )
    await page.click(".bar button", "Commands of")
    await page.click("[role=menuitem]", "Archive")
    await page.until(f"{TITLES}.join() === 'First' && location.pathname === '/'")
    await page.visit(f"http://{stack.http}/chats/{second}")
    await page.see("This chat is archived.")
    without_composer = await page.run("!document.querySelector('.composer')")
    await page.click("button", "Take it back")
    await page.until(f"{TITLES}.includes('Second')")
    await written(page, "repeat after me: back again")
    await page.find(".assistant-message", "back again")
    await idle(page)
    await page.click(".bar button", "Commands of")
    await page.click("[role=menuitem]", "Delete")
    await page.click("dialog button", "Delete")
    await page.until(f"{TITLES}.join() === 'First'")

    assert pins == {"First": 1, "Second": 2}
    assert "repeat after me: Second" in exported
    assert without_composer
    left = call(stack, "GET", "/api/v1/chats", login="roderich")["items"]
    assert [each["title"] for each in left] == ["First"]
