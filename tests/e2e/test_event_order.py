"""The order of events that clients may rely on, from a real stack over HTTP.

A reader who hears of an answer when it is stored is not told how it was written. Where the parts
matter, its end is held until the reader has them.
"""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from support.faults.points import FaultPoints
from support.net.http_client import EventReader, HttpClient, SentEvent
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    return HttpClient(int(stack.http.rpartition(":")[2]), {"Authorization": f"Bearer {key}"})


def prompt(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


class FollowedChat:
    """A chat with one open stream."""

    def __init__(self, client: HttpClient, chat_id: str, stream: EventReader) -> None:
        self.client = client
        self.id = chat_id
        self._stream = stream

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = await self.client.request(method, f"{CHATS}/{self.id}{path}", body)
        assert reply.status < 300, reply.body
        return reply.json()

    async def until(self, last: str) -> list[SentEvent]:
        """Return what comes until something is told, in short."""
        found: list[SentEvent] = []
        async with asyncio.timeout(120):
            while not found or told(found[-1]) != last:
                event = await self._stream.event()
                assert event is not None
                found.append(event)
        return found


async def followed(
    around: AsyncExitStack, stack: LocalStack, text: str, *, is_at_rest: bool = False
) -> FollowedChat:
    """Create a chat and follow it, at once or when its turn is over."""
    client = client_of(stack)
    reply = await client.request("POST", CHATS, prompt(text))
    chat_id = reply.json()["id"]
    path = f"{CHATS}/{chat_id}"
    async with asyncio.timeout(120):
        while is_at_rest:
            chat = (await client.request("GET", path)).json()
            is_at_rest = chat["status"] != "waiting"
    stream = await around.enter_async_context(client.stream(f"{path}/events"))
    return FollowedChat(client, chat_id, stream)


async def followed_at_rest(
    around: AsyncExitStack, stack: LocalStack, text: str = "repeat after me: ready"
) -> FollowedChat:
    """Follow a chat from the end of its first turn on, and have read all before."""
    chat = await followed(around, stack, text, is_at_rest=True)
    await chat.until("status waiting")
    return chat


def told(event: SentEvent) -> str:
    """Return an event in short."""
    match event.event:
        case "status":
            return f"status {event.data['status']['status']}"
        case "message":
            return f"message {event.data['message']['role']}"
        case "message_part":
            return f"part {event.data['message_part']['role']}"
        case other:
            return other


def order_of(events: Sequence[SentEvent]) -> list[str]:
    """Return the events in short, those that are alike as one."""
    return [words for words, _ in itertools.groupby(map(told, events))]


async def test_a_turn_runs_then_shows_its_parts_then_has_its_message_then_waits(
    stack: LocalStack, points: FaultPoints
) -> None:
    async with AsyncExitStack() as around:
        chat = await followed_at_rest(around, stack)
        points.arm("FinishTurn.before", subjects=(chat.id,))
        await chat.ask("POST", "/messages", prompt("count to 10"))
        events = await chat.until("part assistant")
        points.release("FinishTurn.before")
        events += await chat.until("status waiting")
        events += await chat.until("preview_reset")
    assert order_of(events) == [
        "message user", "status running", "preview_reset", "part assistant",
        "message assistant", "status waiting", "preview_reset",
    ]  # fmt: skip


async def test_an_interrupted_turn_says_so_then_keeps_its_part_then_waits(
    stack: LocalStack,
) -> None:
    async with AsyncExitStack() as around:
        chat = await followed(around, stack, "count to 200")
        await chat.until("part assistant")
        await chat.ask("POST", "/interrupt")
        events = await chat.until("status waiting")
    order = [each for each in order_of(events) if each != "part assistant"]
    assert order == ["status interrupting", "message assistant", "status waiting"]


async def test_an_interrupted_turn_is_followed_by_the_next_in_the_queue(
    stack: LocalStack,
) -> None:
    async with AsyncExitStack() as around:
        chat = await followed(around, stack, "count to 200")
        await chat.until("part assistant")
        await chat.ask("POST", "/messages", prompt("repeat after me: next"))
        await chat.until("queue_update")
        await chat.ask("POST", "/interrupt")
        events = await chat.until("status waiting")
    order = [each for each in order_of(events) if each not in ("part assistant", "preview_reset")]
    assert order == [
        "status interrupting", "message assistant", "message user", "queue_update",
        "status running", "message assistant", "status waiting",
    ]  # fmt: skip


async def test_an_edit_voids_the_history_then_gives_it_whole_then_runs(stack: LocalStack) -> None:
    async with AsyncExitStack() as around:
        chat = await followed_at_rest(around, stack)
        await chat.ask("POST", "/messages", prompt("repeat after me: two"))
        first = await chat.until("status waiting")
        first += await chat.until("preview_reset")
        asked = next(each for each in first if told(each) == "message user")
        await chat.ask("PATCH", f"/messages/{asked.data['message']['id']}", prompt("count to 3"))
        events = await chat.until("status waiting")
        page = await chat.ask("GET", "/messages")
    order = order_of(events)
    assert order[:2] == ["history_reset", "message user"]
    # What is left of the history, then the new message, and nothing of what was replaced.
    listed = [each["id"] for each in reversed(page["messages"])]
    assert [each.data["message"]["id"] for each in events if each.event == "message"] == listed
    running = order.index("status running")
    assert "part assistant" not in order[:running]
    assert order[-2:] == ["message assistant", "status waiting"]


async def test_a_summary_is_called_for_then_given_then_stored_then_the_chat_waits(
    stack: LocalStack, points: FaultPoints
) -> None:
    async with AsyncExitStack() as around:
        chat = await followed_at_rest(around, stack)
        points.arm("CommitCompaction.before", subjects=(chat.id,))
        await chat.ask("POST", "/compact")
        events = await chat.until("part tool")
        points.release("CommitCompaction.before")
        events += await chat.until("status waiting")
    assert [each for each in order_of(events) if each != "preview_reset"] == [
        "status running", "part assistant", "part tool",
        "message assistant", "message tool", "status waiting",
    ]  # fmt: skip
    parts = [each.data["message_part"]["part"] for each in events if each.event == "message_part"]
    assert [(part["type"], part["tool_name"]) for part in parts] == [
        ("tool-call", "chat_summarized"),
        ("tool-result", "chat_summarized"),
    ]
