"""A real browser's EventSource as the reader of a chat."""

import asyncio
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.browser import Page, browser_page, browser_program
from support.cutting_proxy import CuttingProxy
from support.faulty_stack import FaultyStack, connect_to
from support.local_stack import LocalStack

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


async def until(page: Page, condition: str) -> None:
    """Wait in the page until something holds."""
    await page.run(WAIT.replace("CONDITION", condition))


async def events_in(page: Page) -> list[tuple[str, str, Any]]:
    found = json.loads(await page.run("JSON.stringify(seen)"))
    return [(cursor, kind, json.loads(data)) for cursor, kind, data in found]


def seqs_of(events: list[tuple[str, str, Any]]) -> list[int]:
    return [data["message_part"]["seq"] for _, kind, data in events if kind == "message_part"]


async def test_an_eventsource_misses_nothing_over_a_cut_and_a_restart_of_the_gateway(
    stack: LocalStack, tmp_path: Path
) -> None:
    browser_program()
    token = stack.home.login_token_file.read_text()
    connection = await connect_to(stack)
    watched = FaultyStack(stack, connection)
    proxy = CuttingProxy(int(stack.http.rpartition(":")[2]))
    async with asyncio.timeout(120), proxy.listening(), browser_page(tmp_path) as page:
        await page.visit(f"http://127.0.0.1:{proxy.port}/login?token={token}")
        chat_id = watched.create("count to 200")
        proxy.cut_behind = b'"text":"20 "'
        await page.run(FOLLOW.replace("CHAT", chat_id).replace("KINDS", json.dumps(KINDS)))
        await until(page, "opened === 2")
        (victim,) = [p for p in stack.status()["processes"] if p["service"] == "gateway"]
        psutil.Process(victim["pid"]).kill()
        await until(page, "opened === 3")
        await until(page, "seen.some(([, , data]) => data.includes('\"waiting\"'))")
        await until(page, "seen[seen.length - 1][1] === 'preview_reset'")
        events = await events_in(page)
        stored = await connection.fetchval(
            "SELECT array_agg(id ORDER BY id) FROM chat.chat_messages WHERE chat_id = $1", chat_id
        )
    await connection.close()
    kinds = [kind for _, kind, _ in events]
    seqs = seqs_of(events)
    assert [kind for kind in kinds if kind != "message_part"] == [
        "message", "status", "message", "status", "preview_reset",
    ]  # fmt: skip
    assert seqs == list(range(1, len(seqs) + 1))
    assert [data["message"]["id"] for _, kind, data in events if kind == "message"] == stored
    text = "".join(
        data["message_part"]["part"]["text"] for _, kind, data in events if kind == "message_part"
    )
    answer = next(data for _, kind, data in reversed(events) if kind == "message")
    # If the gateway came back after the end of the turn, the message alone tells the rest.
    assert answer["message"]["content"][0]["text"].startswith(text)
    assert len(text) > len("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 ")
    streams = [head for head in proxy.heads if b"/events" in head]
    assert len([head for head in streams if b"Last-Event-ID: " in head]) >= 2
    stack.until_whole(without=victim["pid"])
