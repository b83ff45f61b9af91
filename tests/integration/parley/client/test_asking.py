import asyncio

import pytest

from parley.api.chat.v1 import chat_pb2, event_pb2
from parley.client import (
    AnswerFailed,
    AnswerNeedsAction,
    AnswerTimeout,
    ErrorKind,
    Parley,
    TurnError,
)
from support.client.chat_service import (
    RESYNC,
    FakeChatd,
    Pause,
    answer_event,
    status_event,
)

running, waiting = status_event("1", "running"), status_event("9", "waiting")


async def test_a_question_is_answered_with_the_last_text_of_its_turn(
    parley: Parley, chatd: FakeChatd
) -> None:
    looking, found = answer_event("2", 2, "let me look"), answer_event("3", 4, "it is ", "here")
    chatd.streams.scripts.append([running, looking, found, waiting, Pause()])

    async with asyncio.timeout(5):
        assert await parley.ask("where is it?") == "it is here"

    (subscription,) = chatd.streams.requests
    assert list(chatd.chats.chats) == [subscription.chat_id]


async def test_a_question_in_a_chat_is_answered_with_what_comes_after_it(
    parley: Parley, chatd: FakeChatd
) -> None:
    chatd.streams.scripts.append([running, answer_event("2", 3, "still here"), waiting, Pause()])

    async with asyncio.timeout(5):
        chat = await parley.create_chat("hello")
        assert await parley.ask("are you there?", chat_id=chat.id) == "still here"

    (subscription,) = chatd.streams.requests
    assert (subscription.chat_id, subscription.after_id) == (chat.id, 2)


async def test_what_was_read_before_a_resync_is_no_answer(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, answer_event("2", 2, "void"), RESYNC])
    chatd.streams.scripts.append([waiting, Pause()])

    async with asyncio.timeout(5):
        assert await parley.ask("hello?") == ""


async def test_history_that_is_reset_is_no_answer(parley: Parley, chatd: FakeChatd) -> None:
    reset = event_pb2.ChatEvent(cursor="3", history_reset=event_pb2.HistoryResetEvent())
    chatd.streams.scripts.append([running, answer_event("2", 2, "void"), reset, waiting, Pause()])

    async with asyncio.timeout(5):
        assert await parley.ask("hello?") == ""


async def test_a_turn_that_fails_says_why(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, status_event("2", "error"), Pause()])

    async with asyncio.timeout(5):
        chat = await parley.create_chat("hello")
        chatd.chats.chats[chat.id].last_error.CopyFrom(
            chat_pb2.ChatError(message="set a key", kind=chat_pb2.ERROR_KIND_MISSING_KEY)
        )
        with pytest.raises(AnswerFailed) as failed:
            await parley.answer(chat.id)

    assert failed.value.error == TurnError(ErrorKind.MISSING_KEY, "set a key")
    assert failed.value.chat_id == chat.id


async def test_a_turn_that_needs_the_client_is_no_answer(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, status_event("2", "requires_action"), Pause()])

    async with asyncio.timeout(5):
        with pytest.raises(AnswerNeedsAction):
            await parley.ask("hello?")


async def test_a_turn_that_takes_too_long_is_left_alone(parley: Parley, chatd: FakeChatd) -> None:
    chatd.streams.scripts.append([running, Pause()])

    async with asyncio.timeout(5):
        with pytest.raises(AnswerTimeout) as late:
            await parley.ask("hello?", within_s=0.05)

    assert late.value.chat_id in chatd.chats.chats
