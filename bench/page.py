"""Figures of the web page: size, first use, frames while an answer is streamed, connections.

Run as `python bench/page.py [--messages N] [--tokens N] [--rate N] [--turns N]` after
`scripts/page`; prints one JSON object. A stack is started in an empty home, and Chromium opens its
page: a chat of so many messages, all of which are loaded by scrolling up. A model of this bench
then writes Markdown into it, with lists, tables and code, so many tokens a second. At last the
scripted model answers so many short turns, before and after which the heap is measured.
"""

import argparse
import asyncio
import gzip
import json
import re
import sys
import tempfile
import time
import urllib.error
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from bench.machine import print_figures
from bench.streaming_model import streaming_model

from support.net.browser import Browser, Page, browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, sign_in

LOGIN = "paula"
#: Of one answer.
ANSWER_TOKENS_MAX = 2500
TABS = 5
#: The status of a refusal that ends by itself.
TOO_MANY = 429
#: After which a hidden tab has closed its stream.
HIDDEN_S = 6.0
ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "services" / "gateway" / "web" / "built"
#: Notes frames, long tasks, and the time from the arrival of events of an answer to the frame that
#: shows them: the message that is handled after a frame was drawn ends it.
WATCH = """
    window.frames_ms = []; window.long_tasks = []; window.painted_ms = [];
    (() => {
        let arrived = [];
        const read = ReadableStreamDefaultReader.prototype.read;
        ReadableStreamDefaultReader.prototype.read = async function () {
            const found = await read.call(this);
            if (found.value?.length > 100) arrived.push(performance.now());
            return found;
        };
        const drawn = new MessageChannel();
        drawn.port1.onmessage = ({data}) => {
            for (const each of data) painted_ms.push(performance.now() - each);
        };
        new MutationObserver(() => {
            const shown = arrived; arrived = [];
            if (shown.length) requestAnimationFrame(() => drawn.port2.postMessage(shown));
        }).observe(document.querySelector('.timeline-content'),
            {subtree: true, childList: true, characterData: true});
    })();
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) long_tasks.push(entry.duration);
    }).observe({type: 'longtask'});
    (() => {
        let before = performance.now();
        const look = (now) => {
            frames_ms.push(now - before); before = now; requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    })();
"""
#: Scrolls to the top until all messages are there; gives how far what was read moved by that.
LOAD_ALL = """
    new Promise((done) => {
        const scroller = document.querySelector('.timeline-scroll');
        let moved = 0;
        const look = () => {
            const count = document.querySelectorAll('article').length;
            if (count >= COUNT) return done(moved);
            scroller.scrollTop = Math.min(scroller.scrollTop, 200);
            const shown = [...document.querySelectorAll('article')].find(
                (each) => each.getBoundingClientRect().bottom
                    > scroller.getBoundingClientRect().top);
            const before = shown.getBoundingClientRect().top;
            const wait = () => {
                const now = shown.getBoundingClientRect().top;
                if (document.querySelectorAll('article').length === count) {
                    return requestAnimationFrame(wait);
                }
                moved = Math.max(moved, Math.abs(now - before));
                look();
            };
            requestAnimationFrame(wait);
        };
        look();
    })
"""


def sizes() -> dict[str, Any]:
    """Return the gzipped bytes of the scripts that the document loads, and of each chunk."""
    document = (BUILT / "index.html").read_text()
    chunks = {
        path.name: len(gzip.compress(path.read_bytes(), 9))
        for path in sorted((BUILT / "assets").glob("*.js"))
    }
    first = [name for name in chunks if re.search(rf"/assets/{re.escape(name)}", document)]
    return {
        "initial_js_gzip_bytes": sum(chunks[name] for name in first),
        "all_js_gzip_bytes": sum(chunks.values()),
        "css_gzip_bytes": sum(
            len(gzip.compress(path.read_bytes(), 9)) for path in (BUILT / "assets").glob("*.css")
        ),
        "chunks_gzip_bytes": dict(sorted(chunks.items(), key=lambda each: -each[1])[:8]),
    }


def share(values: list[float], part: float) -> float:
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))], 1)


async def first_use(page: Page, http: str) -> float:
    """Return the seconds from an address to a composer that takes text, with an empty cache."""
    await page.ask("Network.clearBrowserCache")
    began = time.monotonic()
    await page.visit(f"http://{http}/")
    await page.find(".composer textarea")
    return round(time.monotonic() - began, 3)


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


async def filled_chat(page: Page, stack: LocalStack, messages: int) -> tuple[str, float]:
    """Make a chat and load all its messages; return its path and how far that moved them."""
    say = {"content": [{"type": "text", "text": "repeat after me: " + "some words " * 12}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login=LOGIN)["id"]
    path = f"/api/v1/chats/{chat_id}"
    for _ in range(messages // 2 - 1):
        await asyncio.to_thread(send, stack, path, say)
    await asyncio.to_thread(wait_until_idle, stack, path)
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.find("article")
    moved = await page.run(LOAD_ALL.replace("COUNT", str(messages)))
    await page.run("document.querySelector('.timeline-scroll').scrollTop = 1e9")
    return path, moved


async def streaming(
    page: Page, stack: LocalStack, path: str, tokens: int, rate: int
) -> dict[str, Any]:
    """Return the frames of the page while a model writes into a chat."""
    async with streaming_model(stack, rate) as model_id:
        await page.run(WATCH)
        began = time.monotonic()
        for begin in range(0, tokens, ANSWER_TOKENS_MAX):
            text = f"write {min(ANSWER_TOKENS_MAX, tokens - begin)} tokens"
            say = {"content": [{"type": "text", "text": text}], "model_id": model_id}
            await asyncio.to_thread(send, stack, path, say)
            await asyncio.to_thread(wait_until_idle, stack, path)
        streamed_s = time.monotonic() - began
    frames, tasks, painted = json.loads(
        await page.run("JSON.stringify([frames_ms, long_tasks, painted_ms])")
    )
    return {
        "tokens": tokens,
        "tokens_per_second": rate,
        "streamed_s": round(streamed_s, 1),
        "frame_p50_ms": share(frames, 0.5),
        "frame_p95_ms": share(frames, 0.95),
        "frame_p99_ms": share(frames, 0.99),
        "longest_frame_ms": round(max(frames), 1),
        "long_tasks_over_50_ms": len(tasks),
        "longest_task_ms": round(max(tasks, default=0.0), 1),
        "event_to_paint_p50_ms": share(painted, 0.5),
        "event_to_paint_p99_ms": share(painted, 0.99),
        "heap_mib": await heap_mib(page),
    }


async def heap_mib(page: Page) -> float:
    """Return the heap of the page after what nothing refers to was collected."""
    await page.ask("HeapProfiler.collectGarbage")
    used = (await page.ask("Runtime.getHeapUsage"))["usedSize"]
    return round(float(used) / 2**20, 1)


async def heap_over_turns(page: Page, stack: LocalStack, turns: int) -> dict[str, Any]:
    """Return the heap before and after many short turns in a chat that is shown."""
    say = {"content": [{"type": "text", "text": "repeat after me: some words"}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login=LOGIN)["id"]
    path = f"/api/v1/chats/{chat_id}"
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.find("article")
    await asyncio.to_thread(wait_until_idle, stack, path)
    before = await heap_mib(page)
    for _ in range(turns):
        await asyncio.to_thread(send, stack, path, say)
    await asyncio.to_thread(wait_until_idle, stack, path)
    await page.until(f"document.querySelectorAll('.assistant-message').length > {turns}")
    after = await heap_mib(page)
    return {
        "turns": turns,
        "heap_before_mib": before,
        "heap_after_mib": after,
        "heap_kib_per_turn": round((after - before) * 1024 / turns, 1),
    }


async def connections(opened: Browser, stack: LocalStack) -> int:
    """Return the streams that a browser holds with a chat in each of its tabs."""
    say = {"content": [{"type": "text", "text": "repeat after me: hello"}]}
    tabs = [await opened.page() for _ in range(TABS)]
    for tab in tabs:
        chat_id = call(stack, "POST", "/api/v1/chats", say, login=LOGIN)["id"]
        await tab.show()
        await tab.visit(f"http://{stack.http}/chats/{chat_id}")
        await tab.find("article")
    await asyncio.sleep(HIDDEN_S)
    return sum(len(page.streams) for page in opened.pages)


async def measured(messages: int, tokens: int, rate: int, turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="parley-page-") as directory:
        stack = LocalStack.at(Path(directory) / "home")
        started = await asyncio.to_thread(stack.up)
        if started.returncode != 0:
            raise SystemExit(started.stdout + started.stderr)
        try:
            async with browser(Path(directory) / "browser") as opened:
                page = await opened.page()
                await page.resize(1280, 800)
                await sign_in(page, stack)
                first = [await first_use(page, stack.http) for _ in range(3)]
                path, moved = await filled_chat(page, stack, messages)
                return {
                    **sizes(),
                    "first_use_s": first,
                    "messages": messages,
                    "moved_by_history_px": round(moved, 2),
                    "streaming": await streaming(page, stack, path, tokens, rate),
                    "turns": await heap_over_turns(page, stack, turns),
                    "streams_of_five_tabs": await connections(opened, stack),
                }
        finally:
            await asyncio.to_thread(stack.parley, "down")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=200, help="tokens a second")
    parser.add_argument("--turns", type=int, default=200)
    given = parser.parse_args()
    print_figures(asyncio.run(measured(given.messages, given.tokens, given.rate, given.turns)))


if __name__ == "__main__":
    main()
