"""Messages and edits that meet a gateway which is killed or starts: stored once, and never lost."""

import psutil
import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, write_first, written

pytestmark = pytest.mark.slow

TYPED = "document.querySelector('.composer textarea').value"
PROMPTS = "[...document.querySelectorAll('.user-bubble')].map((each) => each.innerText)"
ANSWERS = (
    "[...document.querySelectorAll('.assistant-message .prose')].map((each) => each.innerText)"
)
#: The answer to the first request of its kind is lost when it has come: what it asked for is done.
#: The next ones get ANSWER until `isBack`, and the server after that.
LOSE = """
    (() => {
        const served = window.fetch;
        const lost = Promise.withResolvers();
        Object.assign(window, {keys: [], isStored: false, isBack: false, lose: lost.resolve});
        window.fetch = async (request, ...more) => {
            const path = new URL(request.url ?? request, location.origin).pathname;
            if (request.method !== 'METHOD' || !/[/]messages(\\/|$)/.test(path)) {
                return served(request, ...more);
            }
            window.keys.push(request.headers.get('Idempotency-Key'));
            if (window.keys.length === 1) {
                window.isStored = (await served(request, ...more)).ok;
                await lost.promise;
                throw new TypeError('the answer was lost');
            }
            if (!window.isBack) ANSWER;
            return served(request, ...more);
        };
    })()
"""
#: How a server answers that is starting.
STARTING = """
    return new Response(
        JSON.stringify({
            type: 'about:blank', title: 'Unavailable', status: 503, detail: 'It is starting.',
            instance: '', code: 'UNAVAILABLE', retryable: true,
        }),
        {status: 503, headers: {'Content-Type': 'application/problem+json'}})
"""


def losing(method: str, answer: str) -> str:
    return LOSE.replace("METHOD", method).replace("ANSWER", answer)


async def test_an_edit_is_stored_once_over_a_killed_gateway_and_its_text_stays_until_then(
    stack: LocalStack, page: Page
) -> None:
    await write_first(page, "repeat after me: first")
    await page.run(losing("PATCH", "throw new TypeError('nothing answers')"))
    await page.click(".user-message button", "Edit and run again", place=-1)
    await page.see("Editing.")
    await page.run("document.querySelector('.composer textarea').select()")
    await page.type("repeat after me: edited")
    await page.press("Enter")
    await page.until("window.isStored")
    (victim,) = [each for each in stack.status()["processes"] if each["service"] == "gateway"]
    psutil.Process(victim["pid"]).kill()
    await page.run("window.lose()")
    await page.find(".composer-editing .badge", "not stored yet")
    kept = await page.run(TYPED)
    stack.until_whole(without=victim["pid"])
    still_kept = await page.run(TYPED)
    await page.run("window.isBack = true")
    await page.until("!document.querySelector('.composer-editing')")
    await page.until(f"{ANSWERS}.at(-1) === 'edited'")
    await idle(page)
    keys = await page.run("window.keys")
    # Requests that failed while nothing answered are told on the console; nothing else may be.
    page.said[:] = [line for line in page.said if "net::ERR_" not in line]

    assert (kept, still_kept) == ("repeat after me: edited", "repeat after me: edited")
    assert (len(set(keys)), len(keys) > 3) == (1, True)
    assert await page.run(PROMPTS) == ["repeat after me: edited"]
    assert await page.run(ANSWERS) == ["edited"]
    assert await page.run(TYPED) == ""


async def test_a_message_that_finds_the_server_starting_is_stored_once(
    stack: LocalStack, page: Page
) -> None:
    await write_first(page, "repeat after me: first")
    await page.run(losing("POST", STARTING))
    await written(page, "repeat after me: second")
    await page.until("window.isStored")
    await page.run("window.lose()")
    await page.find(".queue .badge", "not stored yet")
    await page.until("window.keys.length > 3")  # Then the page has given up for now.
    typed = await page.run(TYPED)
    await page.run("window.isBack = true; dispatchEvent(new Event('online'))")
    await page.until("!document.querySelector('.queue .badge')")
    await page.until(f"{ANSWERS}.at(-1) === 'second'")
    await idle(page)
    keys = await page.run("window.keys")

    assert typed == ""
    assert len(set(keys)) == 1
    assert await page.run(PROMPTS) == ["repeat after me: first", "repeat after me: second"]
    assert await page.run(ANSWERS) == ["first", "second"]
