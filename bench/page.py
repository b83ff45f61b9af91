"""Figures of the web page: size, first use, frames while an answer is streamed, connections.

Run as `python bench/page.py [--messages N] [--tokens N]` after `scripts/page`; prints one JSON
object. A stack with the scripted model is started in an empty home, and Chromium opens its page: a
chat of so many messages, all of which are loaded by scrolling up, and into which the model then
counts, one number in 50 ms and at most 1000 in a turn: 10,000 take more than eight minutes.
"""

import argparse
import asyncio
import gzip
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from bench.machine import print_figures

from support.net.browser import Browser, Page, browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, sign_in

LOGIN = "paula"
#: Of one turn of the scripted model.
COUNT_MAX = 1000
TABS = 5
#: After which a hidden tab has closed its stream.
HIDDEN_S = 6.0
ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "services" / "gateway" / "web" / "built"
WATCH = """
    window.frames_ms = []; window.long_tasks = [];
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


async def streaming(page: Page, stack: LocalStack, messages: int, tokens: int) -> dict[str, Any]:
    """Return the frames of the page while the model writes into a chat of many messages."""
    say = {"content": [{"type": "text", "text": "repeat after me: " + "some words " * 30}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login=LOGIN)["id"]
    path = f"/api/v1/chats/{chat_id}"
    for _ in range(messages // 2 - 1):
        call(stack, "POST", f"{path}/messages", say, login=LOGIN)
    await asyncio.to_thread(wait_until_idle, stack, path)
    await page.visit(f"http://{stack.http}/chats/{chat_id}")
    await page.find("article")
    moved = await page.run(LOAD_ALL.replace("COUNT", str(messages)))
    await page.run("document.querySelector('.timeline-scroll').scrollTop = 1e9")
    await page.run(WATCH)
    for numbers in [*[COUNT_MAX] * (tokens // COUNT_MAX), tokens % COUNT_MAX]:
        if numbers:
            count = {"content": [{"type": "text", "text": f"count to {numbers}"}]}
            call(stack, "POST", f"{path}/messages", count, login=LOGIN)
    await page.find(".working, .status-dot.is-running")
    began = time.monotonic()
    await asyncio.to_thread(wait_until_idle, stack, path)
    frames = json.loads(await page.run("JSON.stringify(frames_ms)"))
    tasks = json.loads(await page.run("JSON.stringify(long_tasks)"))
    heap = (await page.ask("Runtime.getHeapUsage"))["usedSize"]
    return {
        "messages": messages,
        "tokens": tokens,
        "moved_by_history_px": round(moved, 2),
        "streamed_s": round(time.monotonic() - began, 1),
        "frame_p50_ms": share(frames, 0.5),
        "frame_p95_ms": share(frames, 0.95),
        "long_tasks_over_50_ms": len(tasks),
        "longest_task_ms": round(max(tasks, default=0.0), 1),
        "heap_mib": round(heap / 2**20, 1),
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


async def measured(messages: int, tokens: int) -> dict[str, Any]:
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
                return {
                    **sizes(),
                    "first_use_s": first,
                    "streaming": await streaming(page, stack, messages, tokens),
                    "streams_of_five_tabs": await connections(opened, stack),
                }
        finally:
            await asyncio.to_thread(stack.parley, "down")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=10_000)
    arguments = parser.parse_args()
    print_figures(asyncio.run(measured(arguments.messages, arguments.tokens)))


if __name__ == "__main__":
    main()
