"""The page while connections break: the gateway killed, the network away, tabs closed."""

import asyncio

import psutil
import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, written

pytestmark = pytest.mark.slow

TABS = 5
COUNTED = " ".join(map(str, range(1, 121)))
ANSWER = "document.querySelector('.assistant-message .prose')?.innerText ?? ''"


async def test_a_killed_gateway_costs_no_text_and_offline_messages_are_sent_once(
    stack: LocalStack, page: Page
) -> None:
    await written(page, "count to 120")
    await page.until(f"({ANSWER}).includes(' 9 ')")
    (victim,) = [p for p in stack.status()["processes"] if p["service"] == "gateway"]
    psutil.Process(victim["pid"]).kill()
    await page.until(f"({ANSWER}).trim() === '{COUNTED}'")
    await idle(page)
    stack.until_whole(without=victim["pid"])
    await page.ask(
        "Network.emulateNetworkConditions",
        offline=True,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )
    await written(page, "repeat after me: from offline")
    await page.find(".queue .badge", "not stored yet")
    await page.visit("about:blank")
    await page.ask(
        "Network.emulateNetworkConditions",
        offline=False,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )
    chat_id = call(stack, "GET", "/api/v1/chats", login="paula")["items"][0]["id"]
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.until(
        "[...document.querySelectorAll('.assistant-message')].at(-1)?.innerText"
        ".startsWith('from offline')"
    )
    await idle(page)
    sent = await page.run(
        "[...document.querySelectorAll('.user-bubble')]"
        ".filter((each) => each.innerText.includes('from offline')).length"
    )
    # Requests that failed while nobody answered are told on the console; nothing else may be.
    page.said[:] = [line for line in page.said if "net::ERR_" not in line]

    assert sent == 1


async def test_five_tabs_share_the_feed_and_another_tab_follows_when_its_reader_is_killed(
    stack: LocalStack, page: Page, chromium: Browser
) -> None:
    say = {"content": [{"type": "text", "text": "repeat after me: hello"}]}
    chats = [call(stack, "POST", "/api/v1/chats", say, login="paula")["id"] for _ in range(TABS)]
    tabs = [page, *[await chromium.page() for _ in range(TABS - 1)]]
    for tab, chat_id in zip(tabs, chats, strict=True):
        await tab.show()
        await tab.visit(f"http://{stack.http}/chats/{chat_id}")
        await tab.find("article")

    def streams() -> list[str]:
        return [url for tab in tabs for url in tab.streams.values()]

    async with asyncio.timeout(60):
        while len(streams()) > 2:
            await tabs[-1].run("new Promise((done) => setTimeout(done, 100))")
    held = sorted("feed" if "/chats/" not in url else "chat" for url in streams())
    leader = next(tab for tab in tabs if any("/chats/" not in url for url in tab.streams.values()))
    await leader.close()
    tabs.remove(leader)
    await tabs[-1].show()
    async with asyncio.timeout(60):
        while not any("/chats/" not in url for url in streams()):
            await tabs[-1].run("new Promise((done) => setTimeout(done, 100))")
    title = {"title": "A title of another tab"}
    call(stack, "PATCH", f"/api/v1/chats/{chats[0]}", title, login="paula")
    for tab in tabs:
        await tab.find(".chat-row-title", "A title of another tab")

    assert held == ["chat", "feed"]
