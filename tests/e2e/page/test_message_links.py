"""Links to old messages: what is around them is read, and the rest without a jump."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in

pytestmark = pytest.mark.slow

IDS = "[...document.querySelectorAll('article[id]')].map((each) => Number(each.id.slice(1)))"
#: Scrolls to the gap from its older side until nothing is missing; tells what moved meanwhile.
READ_ON = """
    new Promise((done) => {
        const scroller = document.querySelector('.timeline-scroll');
        const top = (each) => each.getBoundingClientRect().top;
        let moved = 0;
        const look = () => {
            const gap = document.querySelector('.timeline-gap');
            if (!gap) return done(moved);
            const shown = [...document.querySelectorAll('article')]
                .find((each) => each.getBoundingClientRect().bottom > top(scroller));
            const before = top(shown);
            const count = document.querySelectorAll('article').length;
            requestAnimationFrame(() => {
                if (document.querySelectorAll('article').length !== count) {
                    moved = Math.max(moved, Math.abs(top(shown) - before));
                }
                scroller.scrollTop += 120;
                requestAnimationFrame(look);
            });
        };
        look();
    })
"""
#: The height of all messages: with those that are far left out, and with all laid out.
HEIGHTS = """
    (() => {
        const scroller = document.querySelector('.timeline-scroll');
        const groups = [...document.querySelectorAll('.timeline-group')];
        const left_out = scroller.scrollHeight;
        groups.forEach((each) => { each.style.contentVisibility = 'visible'; });
        const whole = scroller.scrollHeight;
        groups.forEach((each) => { each.style.contentVisibility = ''; });
        return [left_out, whole];
    })()
"""
#: Whether all groups of messages but the last are left to the browser.
STILL = "document.querySelectorAll('.timeline-group:not(.is-still)').length === 1"
#: Until the new width of the window is known to the page.
FRAMES = """
    new Promise((done) => {
        let left = 4;
        const look = () => (left -= 1) ? requestAnimationFrame(look) : done();
        requestAnimationFrame(look);
    })
"""


async def test_a_link_to_an_old_message_reads_around_it_and_the_gap_later_without_a_jump(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "linus")
    say = {"content": [{"type": "text", "text": "repeat after me: " + "line " * 40}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login="linus")["id"]
    for _ in range(74):
        call(stack, "POST", f"/api/v1/chats/{chat_id}/messages", say, login="linus")
    await page.find(".chat-row-title", "line")
    await idle(page)
    known = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages?limit=200", login="linus")
    ids = sorted(each["id"] for each in known["messages"])
    wanted = ids[16]
    await page.visit(f"http://{stack.http}/chats/{chat_id}#m{wanted}")
    await page.find(f"#m{wanted}.is-target")
    await page.until(
        f"Math.abs(document.getElementById('m{wanted}').getBoundingClientRect().top"
        " - document.querySelector('.timeline-scroll').getBoundingClientRect().top) < 40"
    )
    first_read = await page.run(IDS)
    moved = await page.run(READ_ON)
    await page.until(STILL)
    left_out, whole = await page.run(HEIGHTS)
    await page.resize(900, 800)
    await page.run(FRAMES)
    await page.until(STILL)
    narrow_left_out, narrow_whole = await page.run(HEIGHTS)

    assert len(ids) == 150
    assert wanted in first_read
    assert len(first_read) < 110
    assert await page.run("document.querySelector('.timeline-gap')") is None
    assert await page.run(IDS) == ids
    assert moved < 1
    assert left_out == whole
    assert narrow_left_out == narrow_whole > whole
