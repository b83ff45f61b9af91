"""Streams of chats, as a person follows them."""

import asyncio
from typing import Any

from parley.api.chat.v1 import event_pb2
from parley.api.chat.v1 import stream_service_pb2 as stream_api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for
from support.chatd.chats.chat_people import Person


def follow(person: Person, chat_id: str, **more: Any) -> Any:
    """Open a stream of a chat; `more` are other fields of the request, such as its cursor."""
    with acting_for(User(UserId(person.id), Role.MEMBER)):
        return person.streams.Subscribe(stream_api.SubscribeRequest(chat_id=chat_id, **more))


async def until(events: Any, last: str) -> list[event_pb2.ChatEvent]:
    """Return the next events, up to the first of a kind."""
    seen: list[event_pb2.ChatEvent] = []
    async with asyncio.timeout(10):
        while not seen or seen[-1].WhichOneof("kind") != last:
            response = await events.read()
            assert response.HasField("event"), response
            seen.append(response.event)
    return seen
