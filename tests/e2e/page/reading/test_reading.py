"""Reading a chat at the page: jumps, the last words in the list, the chime."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

#: How far below the upper edge of the messages each message of the person begins.
TOPS = """
    [...document.querySelectorAll('.user-message')].map((each) => Math.round(
        each.getBoundingClientRect().top
            - document.querySelector('.timeline-scroll').getBoundingClientRect().top))
"""
#: Counts tones in place of playing them alone.
COUNT_TONES = """
    (() => {
        window.tones = 0;
        const create = AudioContext.prototype.createOscillator;
        AudioContext.prototype.createOscillator = function () {
            tones += 1;
            return create.call(this);
        };
    })()
"""
#: Which buttons between messages lie over the words of one.
COVERING = """
    [...document.querySelectorAll('.timeline-moves button')].filter((button) => {
        const at = button.getBoundingClientRect();
        const edge = document.querySelector('.timeline-scroll').getBoundingClientRect();
        return at.width && [...document.querySelectorAll('article')].some((message) => {
            const words = message.getBoundingClientRect();
            return at.left < words.right && at.right > words.left
                && at.top < Math.min(words.bottom, edge.bottom)
                && at.bottom > Math.max(words.top, edge.top);
        });
    }).map((each) => each.innerText || each.ariaLabel)
"""
MARGIN = 16


async def test_arrows_and_keys_go_to_ones_own_messages(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "jonte")
    say = {"content": [{"type": "text", "text": "repeat after me: " + "line " * 400}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login="jonte")["id"]
    for _ in range(3):
        call(stack, "POST", f"/api/v1/chats/{chat_id}/messages", say, login="jonte")
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.until("document.querySelectorAll('.user-message').length === 4")
    await idle(page)
    await page.until("document.querySelectorAll('.assistant-message .message-tools').length === 4")
    await page.click("button", "Your message before this")
    await page.until(f"{TOPS}.includes({MARGIN})")
    at = (await page.run(TOPS)).index(MARGIN)
    await page.press("k")
    await page.until(f"{TOPS}[{at - 1}] === {MARGIN}")
    await page.click("button", "Your message after this")
    await page.until(f"{TOPS}[{at}] === {MARGIN}")
    covering = {}
    for width in (1600, 1280, 900, 390):
        await page.resize(width, 800)
        await page.find(".timeline-latest", "Latest")
        covering[width] = await page.run(COVERING)

    assert at >= 2
    assert covering == {1600: [], 1280: [], 900: [], 390: []}


async def test_an_answer_stays_the_same_element_when_it_is_stored_and_when_the_next_turn_begins(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "solveig")
    await written(page, "count to 80")
    await page.until("document.querySelector('.assistant-message[aria-busy=true] .prose p')")
    await page.run("void (window.first = document.querySelector('.assistant-message .prose p'))")
    await idle(page)
    await page.until("document.querySelector('.assistant-message[id]')")
    stored = await page.run("first.isConnected && first.innerText.includes(' 80')")
    await written(page, "repeat after me: further")
    await page.until("document.querySelectorAll('.assistant-message[id]').length === 2")
    await idle(page)

    assert stored
    assert await page.run("first === document.querySelector('.assistant-message .prose p')")


async def test_the_row_of_a_chat_has_the_last_words_of_its_answer(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "linnea")
    await written(page, "count to 900")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.until(
        r"/… ?\d+ .*\b80\b/.test(document.querySelector('.chat-row-line')?.innerText ?? '')"
    )
    await page.press("Escape")
    await page.see("Interrupted. What was said until then is kept.")
    await page.until("!document.querySelector('.chat-row-line')?.innerText.startsWith('…')")


async def test_a_chime_tells_that_a_turn_has_ended_once_it_is_chosen(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "clio")
    await page.run(COUNT_TONES)
    await written(page, "repeat after me: without")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.until("document.querySelector('.assistant-message')?.innerText.includes('without')")
    await idle(page)
    silent = await page.run("tones")
    await page.run("history.pushState(null, '', '/settings/display')")
    await page.click("label", "A chime when a turn of one of my chats has ended")
    await page.until("tones === 2")
    await page.run("document.activeElement.blur()")
    await page.press("n")
    await written(page, "count to 80")
    await page.until("location.pathname.startsWith('/chats/')")
    await page.until("tones === 4")

    assert silent == 0
