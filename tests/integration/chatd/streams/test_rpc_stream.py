"""Following a chat: enough to see that what is committed arrives, for those who may read."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest

from chatd.chats.domain.chat import NewMessage, Retry
from chatd.chats.domain.commands import FinishTurn, RecordRetry
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, FinishReason, Role, TurnError
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId
from chatd.streams.rpc.position import mark_of
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import stream_service_pb2 as stream_api
from parley.rpc import problem_of
from support.chatd.chats.chat_people import text
from support.chatd.chats.followed_chats import follow
from support.chatd.chats.served_chats import ServedChats


async def until_status(events: Any) -> list[str]:
    """Return the texts of the messages before the first status."""
    texts = []
    while (event := (await events.read()).event).WhichOneof("kind") == "message":
        texts.append(event.message.content[0].text.text)
    assert event.HasField("status")
    return texts


async def test_a_reader_gets_what_was_said_and_what_is_said_next(served: ServedChats) -> None:
    chat = await served.ann.create(system_prompt="be brief")
    async with asyncio.timeout(10):
        events = follow(served.ann, chat.id)
        assert (await events.read()).event.message.content[0].text.text == "hello"
        assert (await events.read()).event.status.status == chat_pb2.CHAT_STATUS_RUNNING
        await served.finish(chat.id, "hi")
        assert (await events.read()).event.message.content[0].text.text == "hi"
        assert (await events.read()).event.status.status == chat_pb2.CHAT_STATUS_WAITING
        assert (await events.read()).event.HasField("preview_reset")
        await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=chat.id))
        assert (await events.read()).closed.reason == stream_api.CLOSE_REASON_NOT_FOUND
        assert await events.read() is grpc.aio.EOF


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (FinishReason.LENGTH, message_pb2.FINISH_REASON_LENGTH),
        (FinishReason.CONTENT_FILTER, message_pb2.FINISH_REASON_CONTENT_FILTER),
        (FinishReason.INTERRUPTED, message_pb2.FINISH_REASON_INTERRUPTED),
    ],
)
async def test_a_reader_is_told_why_an_answer_was_cut(
    served: ServedChats, reason: FinishReason, told: message_pb2.FinishReason
) -> None:
    chat = await served.ann.create()
    cut = NewMessage(Role.ASSISTANT, (Text("Half an"),), finish_reason=reason)
    async with asyncio.timeout(10):
        events = follow(served.ann, chat.id)
        await until_status(events)
        fence = fence_of(await served.state(chat.id))
        await served.stores.chats.apply(ChatId(chat.id), FinishTurn(fence, (cut,)))
        assert (await events.read()).event.message.finish_reason == told
        events.cancel()


async def test_a_reader_is_told_that_an_edit_dropped_the_queue(served: ServedChats) -> None:
    chat = await served.ann.create("one")
    await served.ann.send(chat.id, "two")
    async with asyncio.timeout(10):
        events = follow(served.ann, chat.id)

        async def next_queue() -> list[str]:
            while not (event := (await events.read()).event).HasField("queue_update"):
                pass
            waiting = event.queue_update.queued_messages
            return [each.content[0].text.text for each in waiting]

        assert await next_queue() == ["two"]
        edit = api.EditMessageRequest(
            request_id="e", chat_id=chat.id, message_id=1, content=[text("anew")]
        )
        await served.ann.ask(edit)
        assert await next_queue() == []
        events.cancel()


async def test_a_reader_is_told_of_every_failed_attempt(served: ServedChats) -> None:
    chat = await served.ann.create()
    error = TurnError("Acme is overloaded.", ErrorKind.OVERLOADED, "", "Acme", 529, True)
    retry = Retry(1, 1000, datetime(2026, 1, 1, tzinfo=UTC), error)
    async with asyncio.timeout(10):
        events = follow(served.ann, chat.id)
        await until_status(events)
        fence = fence_of(await served.state(chat.id))
        await served.stores.chats.apply(ChatId(chat.id), RecordRetry(fence, retry))
        told = (await events.read()).event
        again = follow(served.ann, chat.id, cursor=told.cursor)
        await served.finish(chat.id, "hi")
        kinds = []
        while "message" not in kinds:
            kinds.append((await again.read()).event.WhichOneof("kind"))
        # Whoever was told is not told again.
        assert "retry" not in kinds
    assert (told.retry.attempt, told.retry.delay_ms) == (1, 1000)
    assert (told.retry.error.status_code, told.retry.error.retryable) == (529, True)


async def test_somebody_elses_chat_cannot_be_followed(served: ServedChats) -> None:
    chat = await served.ann.create()
    async with asyncio.timeout(10):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await follow(served.bob, chat.id).read()
    assert problem_of(refused.value).reason == "CHAT_NOT_FOUND"


@pytest.mark.parametrize(
    "cursor",
    [
        "1.99999.0.0.0.0",
        "99999.99999.1.0.0.0",
        f"0.{2**63}.0.0.0.0",
        f"0.1.{2**63}.0.0.0",
        "0.1.0.0.0." + "9" * 5000,
        "0.1.0.0.0.\u0661",
        "nonsense",
    ],
)
async def test_a_cursor_that_cannot_be_this_chats_is_answered_with_resync(
    served: ServedChats, cursor: str
) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id, "hi")
    async with asyncio.timeout(10):
        for text in (cursor, mark_of(ChatId(chat.id)) + cursor):
            answer = await follow(served.ann, chat.id, cursor=text).read()
            assert answer.closed.reason == stream_api.CLOSE_REASON_RESYNC


async def test_a_cursor_of_another_chat_is_answered_with_resync(served: ServedChats) -> None:
    chats = [await served.ann.create(), await served.ann.create()]
    for chat in chats:
        await served.finish(chat.id, "hi")
    async with asyncio.timeout(10):
        own, other = [(await follow(served.ann, chat.id).read()).event.cursor for chat in chats]
        answer = await follow(served.ann, chats[0].id, cursor=other).read()
        resumed = await follow(served.ann, chats[0].id, cursor=own).read()
    # But for the mark of the chat they are the same.
    assert own.partition("-")[2] == other.partition("-")[2]
    assert answer.closed.reason == stream_api.CLOSE_REASON_RESYNC
    assert resumed.event.message.content[0].text.text == "hi"


async def test_a_chat_that_was_deleted_cannot_be_resumed(served: ServedChats) -> None:
    chat = await served.ann.create()
    async with asyncio.timeout(10):
        cursor = (await follow(served.ann, chat.id).read()).event.cursor
        await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=chat.id))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await follow(served.ann, chat.id, cursor=cursor).read()
    assert problem_of(refused.value).reason == "CHAT_NOT_FOUND"


async def test_a_reader_without_a_cursor_gets_only_what_is_after_its_message(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id, "hi", "there")
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))
    known = page.messages[-2].id
    async with asyncio.timeout(10):
        events = follow(served.ann, chat.id, after_id=known)
        texts = await until_status(events)
        await served.ann.send(chat.id, "go on")
        following = (await events.read()).event.message.content[0].text.text
        assert (await events.read()).event.HasField("status")
    assert (texts, following) == (["there"], "go on")


async def test_a_cursor_counts_more_than_a_message(served: ServedChats) -> None:
    chat = await served.ann.create()
    async with asyncio.timeout(10):
        cursor = (await follow(served.ann, chat.id).read()).event.cursor
        await served.finish(chat.id, "hi")
        texts = await until_status(follow(served.ann, chat.id, cursor=cursor, after_id=1000))
    assert texts == ["hi"]
