"""A conversation at the page: sent, streamed, queued, interrupted, edited, reverted."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, written

pytestmark = pytest.mark.slow

TOOLS = (
    "run: echo red; ls /none\n"
    'call: write_file {"path": "notes.md", "content": "a\\nb\\n"}\n'
    'call: read_file {"path": "notes.md"}\n'
    'call: list_files {"path": "."}'
)
ANSWERS = (
    "[...document.querySelectorAll('.assistant-message .prose')].map((each) => each.innerText)"
)
PROMPTS = "[...document.querySelectorAll('.user-bubble')].map((each) => each.innerText)"


async def test_a_message_is_streamed_queued_interrupted_and_edited(
    stack: LocalStack, page: Page
) -> None:
    await written(page, "count to 300")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.until(f"{ANSWERS}.join('').includes(' 12 ')")
    await written(page, "repeat after me: queued")
    await page.see("Sent after this turn")
    await page.press("Escape")
    await page.see("Interrupted. What was said until then is kept.")
    await page.until(f"{ANSWERS}.at(-1) === 'queued'")
    await idle(page)
    before = await page.run(PROMPTS)
    await page.click(".user-message button", "Edit and run again", place=-1)
    await page.see("Editing.")
    await page.click(".composer textarea")
    await page.run("document.querySelector('.composer textarea').select()")
    await page.type("repeat after me: edited")
    await page.press("Enter")
    await page.until(f"{ANSWERS}.at(-1) === 'edited'")
    await idle(page)

    shown = await page.run(ANSWERS)
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    stored = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages", login="paula")["messages"]
    texts = [
        "".join(part.get("text", "") for part in message["content"]).strip()
        for message in sorted(stored, key=lambda each: each["id"])
        if message["role"] == "assistant"
    ]
    assert before == ["count to 300", "repeat after me: queued"]
    assert await page.run(PROMPTS) == ["count to 300", "repeat after me: edited"]
    assert shown == texts
    assert shown[0].startswith("1 2 3 4 5")
    assert await page.run("document.title") != "Parley"


async def test_an_edit_is_undone_at_the_page(stack: LocalStack, page: Page) -> None:
    await written(page, "repeat after me: first")
    await page.until(f"{ANSWERS}.at(-1) === 'first'")
    await idle(page)
    await page.click(".user-message button", "Edit and run again", place=-1)
    await page.see("Editing.")
    await page.type(", edited")
    await page.press("Enter")
    await page.until(f"{ANSWERS}.at(-1) === 'first, edited'")
    await idle(page)
    await page.see("You edited a message.")
    await page.click("button", "Undo")
    await page.until(f"{ANSWERS}.at(-1) === 'first'")
    assert await page.run(PROMPTS) == ["repeat after me: first"]


async def test_tool_calls_have_cards_and_a_chat_goes_back_to_before_a_message(
    stack: LocalStack, page: Page
) -> None:
    await written(page, TOOLS)
    await page.until("location.pathname.startsWith('/chats/')")
    await page.see("Looked at 2 places")
    await idle(page)
    await page.find(".badge.is-bad", "exit 2")
    await page.find(".terminal-output", "red")
    await page.click(".card-head", "notes.md")
    await page.find(".diff .is-added", "a")
    await written(page, "repeat after me: later")
    await page.until(f"{ANSWERS}.at(-1) === 'later'")
    await idle(page)
    await page.click(".user-message button", "More commands", place=-1)
    await page.click("[role=menuitem]", "Go back to before this")
    await page.click(".dialog button", "Go back")
    await page.until(f"{PROMPTS}.length === 1")
    await page.click("button", "Undo")
    await page.until(f"{PROMPTS}.length === 2")
    await page.until(f"{ANSWERS}.at(-1) === 'later'")


async def test_older_messages_come_in_above_without_moving_what_is_read(
    stack: LocalStack, page: Page
) -> None:
    say = {"content": [{"type": "text", "text": "repeat after me: " + "line " * 40}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login="paula")["id"]
    for _ in range(29):
        call(stack, "POST", f"/api/v1/chats/{chat_id}/messages", say, login="paula")
    await page.find(".chat-row-title", "line")
    await idle(page)
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.until("document.querySelectorAll('article').length === 50")
    moved = await page.run("""
        new Promise((done) => {
            const scroller = document.querySelector('.timeline-scroll');
            scroller.scrollTop = 300;
            const first = document.querySelector('article');
            let top = null;
            const look = () => {
                const now = first.getBoundingClientRect().top;
                if (document.querySelectorAll('article').length === 60) done(now - top);
                else { top = now; requestAnimationFrame(look); }
            };
            look();
        })
    """)
    await page.visit(f"http://{stack.http}/chats/{chat_id}#m3")
    await page.find("#m3.is-target")

    assert abs(moved) < 1


async def test_the_to_do_list_is_shown_while_items_are_open(stack: LocalStack, page: Page) -> None:
    await written(page, 'call: todo {"items": [{"text": "look"}, {"text": "leap"}]}')
    await page.see("0 of 2 done")
    await idle(page)
    await written(page, 'call: todo {"updates": [{"id": 1, "status": "in_progress"}]}')
    await page.until(
        "document.querySelector('.todo-section summary').innerText === '0 of 2 done look'"
    )
    await idle(page)
    await written(
        page,
        'call: todo {"updates": [{"id": 1, "status": "done"}, {"id": 2, "status": "cancelled"}]}',
    )
    await page.until("document.querySelector('.todo-section') === null")
