"""Figures of the web page: size, first use, frames while an answer is streamed, connections.

Run as `python bench/page.py [--messages N] [--tokens N] [--rate N] [--turns N]` after
`scripts/page`, or with `--heap-minutes N` for the heap over that time alone; prints one JSON
object. A stack is started in an empty home, and Chromium opens its
page: a chat of so many messages, all of which are loaded by scrolling up. A model of this bench
then writes Markdown into it, with lists, tables and code, so many tokens a second; before that it
writes while the browser shows an empty page, whose frames say what the machine allows. At last the
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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from bench.machine import print_figures
from bench.page_heap import (
    LOGIN,
    heap_mib,
    heap_over_minutes,
    heap_over_turns,
    send,
    wait_until_idle,
)
from bench.streaming_model import streaming_model

from support.net.browser import Browser, Page, new_browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, sign_in

#: Of one answer.
ANSWER_TOKENS_MAX = 2500
TABS = 5
#: After which a hidden tab has closed its stream.
HIDDEN_S = 6.0
ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "services" / "gateway" / "web" / "built"
#: Notes frames and long tasks of any page. The message that a frame sends is handled after it was
#: drawn, and ends what it shows.
FRAMES = """
    window.frames_ms = []; window.long_tasks = []; window.after_frame = () => {};
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) long_tasks.push(entry.duration);
    }).observe({type: 'longtask'});
    (() => {
        const drawn = new MessageChannel();
        drawn.port1.onmessage = () => after_frame();
        let before = performance.now();
        const look = (now) => {
            frames_ms.push(now - before); before = now;
            drawn.port2.postMessage(null);
            requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    })();
"""
#: Notes the time from the arrival of events of an answer to the frame that shows them.
PAINTED = """
    window.painted_ms = [];
    (() => {
        let arrived = [], shown = [];
        const read = ReadableStreamDefaultReader.prototype.read;
        ReadableStreamDefaultReader.prototype.read = async function () {
            const found = await read.call(this);
            if (found.value?.length > 100) arrived.push(performance.now());
            return found;
        };
        new MutationObserver(() => {
            shown.push(...arrived); arrived = [];
        }).observe(document.querySelector('.timeline-content'),
            {subtree: true, childList: true, characterData: true});
        window.after_frame = () => {
            for (const each of shown) painted_ms.push(performance.now() - each);
            shown = [];
        };
    })();
"""
#: For so long the frames of a page are measured in which nothing happens.
IDLE_S = 3.0
#: Written while the browser shows an empty page: how fast frames can be beside the servers.
ELSEWHERE_TOKENS = 1000
#: Of the browser's own counters, in seconds of its main thread's processor time.
COUNTERS = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
#: Scrolls to the top until all messages are there; gives how far what was read moved by that, and
#: how long each page took from the scroll to the frame after it.
LOAD_ALL = """
    new Promise((done) => {
        const scroller = document.querySelector('.timeline-scroll');
        let moved = 0;
        const pages_ms = [];
        const look = () => {
            const count = document.querySelectorAll('article').length;
            if (count >= COUNT) return done(JSON.stringify([moved, pages_ms]));
            const began = performance.now();
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
                pages_ms.push(performance.now() - began);
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


async def filled_chat(stack: LocalStack, messages: int) -> str:
    """Make a chat of so many messages; return its path."""
    say = {"content": [{"type": "text", "text": "repeat after me: " + "some words " * 12}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say, login=LOGIN)["id"]
    path = f"/api/v1/chats/{chat_id}"
    for _ in range(messages // 2 - 1):
        await asyncio.to_thread(send, stack, path, say)
    await asyncio.to_thread(wait_until_idle, stack, path)
    return path


async def loaded(page: Page, stack: LocalStack, path: str, messages: int) -> dict[str, Any]:
    """Load all messages of a chat; return what that took, and how far it moved what was read."""
    await page.visit(f"http://{stack.http}{path.removeprefix('/api/v1')}")
    await page.find("article")
    await page.ask("Performance.enable", timeDomain="threadTicks")
    before = await counters(page)
    moved, pages_ms = json.loads(await page.run(LOAD_ALL.replace("COUNT", str(messages))))
    after = await counters(page)
    await page.run("document.querySelector('.timeline-scroll').scrollTop = 1e9")
    return {
        "moved_px": round(moved, 2),
        "pages": len(pages_ms),
        "page_p50_ms": share(pages_ms, 0.5),
        "page_p95_ms": share(pages_ms, 0.95),
        "busy_ms_per_page": {
            name: round((after[name] - before[name]) * 1000 / len(pages_ms), 1) for name in COUNTERS
        },
    }


async def write(stack: LocalStack, path: str, model_id: str, tokens: int) -> None:
    """Have a model write so many tokens, and wait until they are written."""
    say = {"content": [{"type": "text", "text": f"write {tokens} tokens"}], "model_id": model_id}
    await asyncio.to_thread(send, stack, path, say)
    await asyncio.to_thread(wait_until_idle, stack, path)


async def frames_elsewhere(
    page: Page, stack: LocalStack, path: str, model_id: str
) -> dict[str, float]:
    """Return the frames of an empty page while a model writes into a chat that is not shown."""
    await page.visit("about:blank")
    await page.run(FRAMES)
    await write(stack, path, model_id, ELSEWHERE_TOKENS)
    frames = json.loads(await page.run("JSON.stringify(frames_ms)"))
    return {"p50_ms": share(frames, 0.5), "p95_ms": share(frames, 0.95)}


async def counters(page: Page) -> dict[str, float]:
    metrics = (await page.ask("Performance.getMetrics"))["metrics"]
    return {each["name"]: each["value"] for each in metrics if each["name"] in COUNTERS}


async def streaming(
    page: Page, stack: LocalStack, path: str, model_id: str, tokens: int
) -> dict[str, Any]:
    """Return the frames of the page while a model writes into the chat that it shows."""
    await page.ask("Performance.enable", timeDomain="threadTicks")
    await page.run(FRAMES)
    await asyncio.sleep(IDLE_S)
    idle = json.loads(await page.run("JSON.stringify(frames_ms)"))
    await page.run("frames_ms.length = 0; long_tasks.length = 0;")
    await page.run(PAINTED)
    before = await counters(page)
    began = time.monotonic()
    for begin in range(0, tokens, ANSWER_TOKENS_MAX):
        await write(stack, path, model_id, min(ANSWER_TOKENS_MAX, tokens - begin))
    streamed_s = time.monotonic() - began
    after = await counters(page)
    frames, tasks, painted = json.loads(
        await page.run("JSON.stringify([frames_ms, long_tasks, painted_ms])")
    )
    return {
        "tokens": tokens,
        "streamed_s": round(streamed_s, 1),
        "idle_frame_p50_ms": share(idle, 0.5),
        "idle_frame_p95_ms": share(idle, 0.95),
        "frame_p50_ms": share(frames, 0.5),
        "frame_p95_ms": share(frames, 0.95),
        "frame_p99_ms": share(frames, 0.99),
        "longest_frame_ms": round(max(frames), 1),
        "long_tasks_over_50_ms": len(tasks),
        "longest_task_ms": round(max(tasks, default=0.0), 1),
        "event_to_paint_p50_ms": share(painted, 0.5),
        "event_to_paint_p99_ms": share(painted, 0.99),
        "busy_ms_per_s": {
            name: round((after[name] - before[name]) * 1000 / streamed_s, 1) for name in COUNTERS
        },
        "heap_mib": await heap_mib(page),
    }


async def shown_answers(
    page: Page, stack: LocalStack, messages: int, tokens: int, rate: int
) -> dict[str, Any]:
    """Return the figures of long answers into a long chat, beside those of an empty page."""
    path = await filled_chat(stack, messages)
    async with streaming_model(stack, rate) as model_id:
        elsewhere = await frames_elsewhere(page, stack, path, model_id)
        history = await loaded(page, stack, path, messages)
        found = await streaming(page, stack, path, model_id, tokens)
    return {
        "messages": messages,
        "moved_by_history_px": history["moved_px"],
        "history": history,
        "streaming": {
            "tokens_per_second": rate,
            "empty_page_frame": elsewhere,
            "frame_p95_by_that_of_an_empty_page": round(
                found["frame_p95_ms"] / elsewhere["p95_ms"], 2
            ),
            **found,
        },
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


@asynccontextmanager
async def signed_in() -> AsyncIterator[tuple[Browser, Page, LocalStack]]:
    """Give a browser whose tab is signed in at a stack of its own."""
    with tempfile.TemporaryDirectory(prefix="parley-page-") as directory:
        stack = LocalStack.at(Path(directory) / "home")
        started = await asyncio.to_thread(stack.up)
        if started.returncode != 0:
            raise SystemExit(started.stdout + started.stderr)
        try:
            async with new_browser(Path(directory) / "browser") as opened:
                page = await opened.page()
                await page.resize(1280, 800)
                await sign_in(page, stack)
                yield opened, page, stack
        finally:
            await asyncio.to_thread(stack.parley, "down")


async def measured(messages: int, tokens: int, rate: int, turns: int) -> dict[str, Any]:
    async with signed_in() as (opened, page, stack):
        first = [await first_use(page, stack.http) for _ in range(3)]
        return {
            **sizes(),
            "first_use_s": first,
            **await shown_answers(page, stack, messages, tokens, rate),
            "turns": await heap_over_turns(page, stack, turns),
            "streams_of_five_tabs": await connections(opened, stack),
        }


async def measured_heap(minutes: float) -> dict[str, Any]:
    async with signed_in() as (_, page, stack):
        return await heap_over_minutes(page, stack, minutes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=200, help="tokens a second")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--heap-minutes", type=float, help="measure the heap for so long instead")
    given = parser.parse_args()
    if given.heap_minutes is None:
        wanted = measured(given.messages, given.tokens, given.rate, given.turns)
    else:
        wanted = measured_heap(given.heap_minutes)
    print_figures(asyncio.run(wanted))


if __name__ == "__main__":
    main()
