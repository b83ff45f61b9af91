"""Following a chat: enough to see that what is committed arrives, for those who may read."""

import asyncio
from typing import Any

import grpc
import pytest

from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import stream_service_pb2 as stream_api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for, problem_of
from support.served_chats import Person, ServedChats


def follow(person: Person, chat_id: str) -> Any:
    with acting_for(User(UserId(person.id), Role.MEMBER)):
        return person.streams.Subscribe(stream_api.SubscribeRequest(chat_id=chat_id))


async def test_a_reader_gets_what_was_said_and_what_is_said_next(served: ServedChats) -> None:
    chat = await served.ann.create(system_prompt="be brief")
    async with asyncio.timeout(10):
        events = follow(served.ann, chat.id)
        assert (await events.read()).event.message.content[0].text.text == "hello"
        assert (await events.read()).event.status.status == chat_pb2.CHAT_STATUS_RUNNING
        await served.finish(chat.id, "hi")
        assert (await events.read()).event.message.content[0].text.text == "hi"
        assert (await events.read()).event.status.status == chat_pb2.CHAT_STATUS_WAITING
        await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=chat.id))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await events.read()
    assert problem_of(refused.value).reason == "CHAT_NOT_FOUND"


async def test_somebody_elses_chat_cannot_be_followed(served: ServedChats) -> None:
    chat = await served.ann.create()
    async with asyncio.timeout(10):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await follow(served.bob, chat.id).read()
    assert problem_of(refused.value).reason == "CHAT_NOT_FOUND"
