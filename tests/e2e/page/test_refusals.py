"""What was typed stays, whatever the server answers."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import PASSWORD, idle, sign_in, written

pytestmark = pytest.mark.slow

REFUSALS = (403, 404, 409, 412, 413, 415, 422, 429, 503)
TYPED = "document.querySelector('.composer textarea').value"
#: Answers messages with a status in place of the server; nothing else is changed.
REFUSE = """
    (() => {
        window.served ??= window.fetch;
        window.refused = 0;
        window.fetch = (request, ...more) => {
            const path = new URL(request.url ?? request, location.origin).pathname;
            if (request.method !== 'POST' || !path.endsWith('/messages')) {
                return window.served(request, ...more);
            }
            window.refused += 1;
            const status = STATUS;
            const document = {
                type: 'about:blank', title: 'Refused', status, detail: `Refused with ${status}.`,
                instance: '', code: 'REFUSED', retryable: false,
            };
            const headers = {'Content-Type': 'application/problem+json'};
            return Promise.resolve(new Response(JSON.stringify(document), {status, headers}));
        };
    })()
"""


async def test_what_was_typed_stays_whatever_the_server_refuses_it_with(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "resi")
    await written(page, "repeat after me: first")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    address = await page.run("location.pathname")
    kept = {}
    await page.click(".composer textarea")
    await page.type("a long thought")
    for status in REFUSALS:
        await page.run(REFUSE.replace("STATUS", str(status)))
        await page.click(".composer textarea")
        await page.press("Enter")
        await page.see(f"Refused with {status}.")
        await page.until(f"window.refused > 0 && {TYPED} !== ''")
        kept[status] = await page.run(TYPED)
    await page.run(REFUSE.replace("STATUS", "401"))
    await page.click(".composer textarea")
    await page.press("Enter")
    await page.until("location.pathname === '/sign-in'")
    await page.click("input[name=login]")
    await page.type("resi")
    await page.click("input[name=password]")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.until(f"location.pathname === '{address}'")
    await page.until(f"document.querySelector('.composer textarea') && {TYPED} !== ''")

    assert kept == dict.fromkeys(REFUSALS, "a long thought")
    assert await page.run(TYPED) == "a long thought"
    assert await page.run("document.querySelectorAll('.user-bubble').length") == 1


async def test_a_message_that_waited_and_is_refused_stays_until_it_is_sent_again(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "rudi")
    await written(page, "repeat after me: first")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.run(
        """
        window.served = window.fetch;
        window.rejected = 0;
        window.fetch = (request, ...more) => {
            if (request.method !== 'POST' || !request.url.endsWith('/messages')) {
                return window.served(request, ...more);
            }
            window.rejected += 1;
            return Promise.reject(new TypeError('no connection'));
        };
        """
    )
    await page.click(".composer textarea")
    await page.type("repeat after me: second")
    await page.press("Enter")
    await page.see("not stored yet")
    await page.until("window.rejected >= 3")  # Then the page has given up for now.
    await page.run(REFUSE.replace("STATUS", "422"))
    await page.run("dispatchEvent(new Event('online'))")
    await page.see("not sent: Refused with 422.")
    await page.run("window.fetch = window.served")
    await page.click("[aria-label='Send again']")
    await page.until("document.querySelectorAll('.user-bubble').length === 2")
    await idle(page)

    assert await page.run("document.querySelectorAll('[aria-label=\"Send again\"]').length") == 0
