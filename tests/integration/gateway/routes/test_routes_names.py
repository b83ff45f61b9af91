"""Chats, messages and their events show the names of owners and senders beside the ids."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from parley.api.chat.v1 import chat_pb2, event_pb2, message_pb2
from support.gateway.chats import new_chat
from support.gateway.stack import GatewayStack
from support.gateway.users import USER_ID
from support.net.http_client import EventReader

NEW_NAME = "Countess of Lovelace"


@pytest.fixture
async def chat_id(stack: GatewayStack) -> str:
    """A chat of the owner, whose messages and queue are of the owner too."""
    me = (await stack.owner.request("GET", "/api/v1/me")).json()["id"]
    chat_id = await new_chat(stack)
    chat = stack.chatd.chats[chat_id]
    chat.owner_id = me
    chat.children.add(id=chat_id, owner_id=USER_ID)
    stack.chatd.queues[chat_id] = [chat_pb2.QueuedMessage(id="q", created_by=me)]
    return chat_id


async def shown(stack: GatewayStack, path: str) -> Any:
    return (await stack.owner.request("GET", path)).json()


async def document(stream: EventReader) -> Any:
    event = await stream.event()
    assert event is not None
    return event.data


async def names(stack: GatewayStack) -> AsyncIterator[str]:
    """Yield the name of the owner in the list of chats, request by request."""
    while True:
        [chat] = (await shown(stack, "/api/v1/chats"))["items"]
        yield chat["owner_name"]


async def test_chats_and_messages_name_their_owners_and_senders(
    stack: GatewayStack, chat_id: str
) -> None:
    [listed] = (await shown(stack, "/api/v1/chats"))["items"]
    chat = await shown(stack, f"/api/v1/chats/{chat_id}")
    page = await shown(stack, f"/api/v1/chats/{chat_id}/messages")

    assert (listed["owner_name"], chat["owner_name"]) == ("Owner", "Owner")
    assert [each["owner_name"] for each in chat["children"]] == [None]
    assert [each["created_by_name"] for each in page["messages"]] == [None]
    assert [each["created_by_name"] for each in page["queued_messages"]] == ["Owner"]


async def test_events_name_owners_and_senders(stack: GatewayStack, chat_id: str) -> None:
    me = stack.chatd.chats[chat_id].owner_id
    message = message_pb2.Message(id=1, chat_id=chat_id, created_by=me)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        subscription = await stack.chatd.subscriptions.get()
        subscription.send(event_pb2.ChatEvent(cursor="1", message=message))
        assert (await document(stream))["message"]["created_by_name"] == "Owner"
    async with asyncio.timeout(10), stack.owner.stream("/api/v1/events") as stream:
        subscription = await stack.chatd.subscriptions.get()
        chat = chat_pb2.Chat(id=chat_id, owner_id=me)
        subscription.send_feed(
            event_pb2.FeedEvent(cursor="1", change=event_pb2.FEED_CHANGE_UPDATED, chat=chat)
        )
        assert (await document(stream))["chat"]["owner_name"] == "Owner"


async def test_a_new_name_is_shown_without_reading_it_for_each_answer(
    stack: GatewayStack, chat_id: str
) -> None:
    changed = await stack.owner.request("PATCH", "/api/v1/me", {"display_name": NEW_NAME})
    assert changed.status == 200, changed.body
    async with asyncio.timeout(10):
        async for name in names(stack):
            if name == NEW_NAME:
                break
    chat = await shown(stack, f"/api/v1/chats/{chat_id}")

    assert chat["owner_name"] == NEW_NAME
