"""The heap of the page: what it holds before and after turns, and over an hour of use.

For the hour a browser stays in one document. Short turns go to some chats in rotation, so that the
list of chats changes with each of them; every while the next chat is opened, which shows its turns
as they come, and the one before is left; and chats are made and deleted. The heap is measured in a
chat that nothing happens in, after what nothing refers to was collected.
"""

import asyncio
import itertools
import json
import sys
import time
import urllib.error
from collections.abc import Sequence
from typing import Any

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

LOGIN = "paula"
#: The status of a refusal that ends by itself.
TOO_MANY = 429
#: What the scripted model repeats.
SHORT = {"content": [{"type": "text", "text": "repeat after me: some words"}]}
#: Chats that get the turns of an hour, in rotation.
BUSY_CHATS = 6
#: From one of those turns to the next, at least.
TURN_S = 1.5
#: For how many turns a chat is shown before the next one is opened.
SHOWN_TURNS = 15
#: After so many turns a chat is made, and deleted.
MADE_TURNS = 20
#: From one measurement to the next.
SAMPLE_S = 600.0
#: What the browser counts in a page, beside its heap.
COUNTED = {"Nodes": "nodes", "JSEventListeners": "listeners", "Documents": "documents"}
OPEN = """
    (() => {
        const row = document.querySelector('nav a[href^="/chats/CHAT"]');
        row?.click();
        return Boolean(row);
    })()
"""


def wait_until_idle(stack: LocalStack, path: str) -> None:
    """Wait until a chat has answered all its messages."""
    while True:
        chat = call(stack, "GET", path, login=LOGIN)
        if chat["status"] == "waiting" and not chat["queue_length"]:
            return
        time.sleep(0.5)


def send(stack: LocalStack, path: str, say: dict[str, Any]) -> None:
    """Send a message to a chat; while its queue is full, or the rate limit holds, wait."""
    while True:
        try:
            call(stack, "POST", f"{path}/messages", say, login=LOGIN)
            return
        except urllib.error.HTTPError as refused:
            if refused.code != TOO_MANY:
                raise
            time.sleep(0.2)


def made(stack: LocalStack) -> str:
    """Make a chat with one short turn; return its id."""
    chat_id: str = call(stack, "POST", "/api/v1/chats", SHORT, login=LOGIN)["id"]
    return chat_id


async def heap_mib(page: Page) -> float:
    """Return the heap of the page after what nothing refers to was collected."""
    await page.ask("HeapProfiler.collectGarbage")
    used = (await page.ask("Runtime.getHeapUsage"))["usedSize"]
    return round(float(used) / 2**20, 1)


async def heap_over_turns(page: Page, stack: LocalStack, turns: int) -> dict[str, Any]:
    """Return the heap before and after many short turns in a chat that is shown."""
    chat_id = made(stack)
    path = f"/api/v1/chats/{chat_id}"
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.find("article")
    await asyncio.to_thread(wait_until_idle, stack, path)
    before = await heap_mib(page)
    for _ in range(turns):
        await asyncio.to_thread(send, stack, path, SHORT)
    await asyncio.to_thread(wait_until_idle, stack, path)
    await page.until(f"document.querySelectorAll('.assistant-message').length > {turns}")
    after = await heap_mib(page)
    return {
        "turns": turns,
        "heap_before_mib": before,
        "heap_after_mib": after,
        "heap_kib_per_turn": round((after - before) * 1024 / turns, 1),
    }


async def opened(page: Page, chat_id: str) -> None:
    """Open a chat from the list, as people do, and wait until its messages are there."""
    await page.until(OPEN.replace("CHAT", chat_id))
    await page.until(f"location.pathname === '/chats/{chat_id}'")
    await page.find("article")


async def sample(page: Page, quiet_id: str, began: float, turns: int) -> dict[str, Any]:
    """Return what the page holds while it shows a chat in which nothing happens."""
    await opened(page, quiet_id)
    heap = await heap_mib(page)
    usage = await page.ask("Runtime.getHeapUsage")
    metrics = {
        each["name"]: each["value"]
        for each in (await page.ask("Performance.getMetrics"))["metrics"]
    }
    # Memory of elements and of buffers is not in the heap of scripts.
    beside = usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0)
    found = {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "turns": turns,
        "heap_mib": heap,
        "beside_heap_mib": round(float(beside) / 2**20, 1),
        **{name: int(metrics[each]) for each, name in COUNTED.items()},
        "connections": len(page.streams),
    }
    # An hour is long: what is known is told as it comes.
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


async def _turns(
    stack: LocalStack, page: Page, chats: Sequence[str], numbers: Sequence[int]
) -> None:
    """Have turns in some chats in rotation, and open, make and delete chats meanwhile."""
    for number in numbers:
        due = time.monotonic() + TURN_S
        if number % SHOWN_TURNS == 0:
            await opened(page, chats[number // SHOWN_TURNS % len(chats)])
        if number % MADE_TURNS == 0:
            made_id = await asyncio.to_thread(made, stack)
            await asyncio.to_thread(wait_until_idle, stack, f"/api/v1/chats/{made_id}")
            await asyncio.to_thread(call, stack, "DELETE", f"/api/v1/chats/{made_id}", login=LOGIN)
        path = f"/api/v1/chats/{chats[number % len(chats)]}"
        await asyncio.to_thread(send, stack, path, SHORT)
        await asyncio.sleep(max(0.0, due - time.monotonic()))


async def heap_over_minutes(page: Page, stack: LocalStack, minutes: float) -> dict[str, Any]:
    """Return what a page holds at first, every ten minutes and at last, while it is used."""
    quiet_id = made(stack)
    chats = [made(stack) for _ in range(BUSY_CHATS)]
    await page.visit(f"http://{stack.http}/chats/{quiet_id}")
    await page.find("article")
    await page.ask("Performance.enable")
    # A first round loads what the page reads once, and fills what it keeps.
    numbers = itertools.count()
    await _turns(stack, page, chats, [next(numbers) for _ in range(SHOWN_TURNS * BUSY_CHATS)])
    began, turns = time.monotonic(), 0
    samples = [await sample(page, quiet_id, began, turns)]
    while (left_s := minutes * 60 - (time.monotonic() - began)) > 0:
        until = time.monotonic() + min(SAMPLE_S, left_s)
        while time.monotonic() < until:
            await _turns(stack, page, chats, [next(numbers)])
            turns += 1
        for chat_id in chats:
            await asyncio.to_thread(wait_until_idle, stack, f"/api/v1/chats/{chat_id}")
        samples.append(await sample(page, quiet_id, began, turns))
    return {
        "samples": samples,
        "heap_grown_mib": round(samples[-1]["heap_mib"] - samples[0]["heap_mib"], 1),
    }
