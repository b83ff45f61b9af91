"""A real browser's EventSource as the reader of a chat."""

import asyncio
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.faults.points import FaultPoints
from support.net.browser import Page, browser_page
from support.net.browser_program import browser_program
from support.net.cutting_proxy import CuttingProxy
from support.stack.faulty_stack import watching
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

KINDS = ("message_part", "message", "status", "queue_update", "preview_reset", "resync", "bye")
# It notes what arrives and how often the browser had to connect, and does nothing to resume.
FOLLOW = """
    window.seen = []; window.opened = 0;
    window.source = new EventSource('/api/v1/chats/CHAT/events');
    source.onopen = () => { opened += 1; };
    for (const kind of KINDS)
        source.addEventListener(kind, (event) => seen.push([event.lastEventId, kind, event.data]));
"""
WAIT = """
    new Promise((resolve) => {
        const look = () => (CONDITION) ? resolve(true) : setTimeout(look, 20);
        look();
    })
"""
TEXT = """
    seen.filter(([, kind]) => kind === 'message_part')
        .map(([, , data]) => JSON.parse(data).message_part.part.text).join('')
"""
TOLD_TO_WAIT = "seen.some(([, , data]) => data.includes('\"waiting\"'))"


async def until(page: Page, condition: str) -> None:
    """Wait in the page until something holds."""
    await page.run(WAIT.replace("CONDITION", condition))


async def events_in(page: Page) -> list[tuple[str, str, Any]]:
    found = json.loads(await page.run("JSON.stringify(seen)"))
    return [(cursor, kind, json.loads(data)) for cursor, kind, data in found]


def seqs_of(events: list[tuple[str, str, Any]]) -> list[int]:
    return [data["message_part"]["seq"] for _, kind, data in events if kind == "message_part"]


async def test_an_eventsource_misses_nothing_over_a_cut_and_a_restart_of_the_gateway(
    stack: LocalStack, points: FaultPoints, tmp_path: Path
) -> None:
    browser_program()
    token = stack.home.login_token_file.read_text()
    proxy = CuttingProxy(int(stack.http.rpartition(":")[2]))
    async with (
        asyncio.timeout(240),
        watching(stack) as watched,
        proxy.listening(),
        browser_page(tmp_path) as page,
    ):
        await page.visit(f"http://127.0.0.1:{proxy.port}/login?token={token}")
        chat_id = watched.create("repeat after me: ready")
        await watched.until(chat_id, lambda where: where.status == "waiting")
        await page.run(FOLLOW.replace("CHAT", chat_id).replace("KINDS", json.dumps(KINDS)))
        await until(page, TOLD_TO_WAIT)
        await page.run("seen.length = 0")
        # The answer goes on when the reader is where the test wants it, however long that takes.
        points.arm("model.event", subjects=(chat_id,), nth=20)
        points.arm("FinishTurn.before", subjects=(chat_id,))
        watched.send(chat_id, "count to 40")
        await until(page, f"{TEXT}.endsWith(' 20 ')")
        proxy.cut()
        await until(page, "opened === 2")
        (victim,) = [p for p in stack.status()["processes"] if p["service"] == "gateway"]
        psutil.Process(victim["pid"]).kill()
        await until(page, "opened === 3")
        points.release("model.event")
        await until(page, f"{TEXT}.endsWith(' 40 ')")
        points.release("FinishTurn.before")
        await until(page, TOLD_TO_WAIT)
        await until(page, "seen[seen.length - 1][1] === 'preview_reset'")
        events = await events_in(page)
        stored = await watched.connection.fetchval(
            "SELECT array_agg(id ORDER BY id) FROM chat.chat_messages WHERE chat_id = $1", chat_id
        )
    kinds = [kind for _, kind, _ in events]
    seqs = seqs_of(events)
    assert [kind for kind in kinds if kind != "message_part"] == [
        "message", "status", "preview_reset", "message", "status", "preview_reset",
    ]  # fmt: skip
    assert seqs == list(range(1, len(seqs) + 1))
    assert [data["message"]["id"] for _, kind, data in events if kind == "message"] == stored[2:]
    text = "".join(
        data["message_part"]["part"]["text"] for _, kind, data in events if kind == "message_part"
    )
    answer = next(data for _, kind, data in reversed(events) if kind == "message")
    assert text == answer["message"]["content"][0]["text"]
    streams = [head for head in proxy.heads if b"/events" in head]
    assert len([head for head in streams if b"Last-Event-ID: " in head]) >= 2
    stack.until_whole(without=victim["pid"])
