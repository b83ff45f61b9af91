"""A page of a history and the stream after its cursor: together they have everything, once."""

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitStep, FailTurn
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId
from chatd.streams.hub.timeline import Tail
from chatd.streams.rpc.position import AFTER_QUEUE
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import event_pb2
from support.chatd.chats.chat_people import Person, text
from support.chatd.chats.followed_chats import follow, until
from support.chatd.chats.served_chats import ServedChats


async def page(person: Person, chat_id: str, **bounds: int) -> api.ListMessagesResponse:
    answer: api.ListMessagesResponse = await person.ask(
        api.ListMessagesRequest(chat_id=chat_id, **bounds)
    )
    return answer


def said(event: event_pb2.ChatEvent) -> str:
    kind = event.WhichOneof("kind")
    return event.message.content[0].text.text if kind == "message" else str(kind)


def ids(answer: api.ListMessagesResponse) -> list[int]:
    return [message.id for message in answer.messages]


async def test_the_stream_goes_on_after_a_page_with_the_status_and_without_its_messages(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("one")
    await served.ann.send(chat.id, "waits")
    opened = await page(served.ann, chat.id)
    assert [each.content[0].text.text for each in opened.queued_messages] == ["waits"]

    events = follow(served.ann, chat.id, cursor=opened.cursor)
    assert list(map(said, await until(events, "status"))) == ["status"]
    await served.finish(chat.id, "first answer")
    assert list(map(said, await until(events, "preview_reset"))) == [
        "first answer",
        "waits",
        "queue_update",
        "preview_reset",
    ]
    events.cancel()


async def test_changes_between_a_page_and_its_stream_are_sent_once_and_in_order(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("one")
    opened = await page(served.ann, chat.id)
    await served.finish(chat.id, "answer")
    await served.ann.send(chat.id, "two")
    await served.ann.send(chat.id, "waits")

    events = follow(served.ann, chat.id, cursor=opened.cursor)
    seen = await until(events, "preview_reset")
    assert list(map(said, seen)) == ["answer", "two", "queue_update", "status", "preview_reset"]
    again = follow(served.ann, chat.id, cursor=seen[0].cursor)
    assert list(map(said, await until(again, "preview_reset"))) == [
        "two",
        "queue_update",
        "status",
        "preview_reset",
    ]
    events.cancel()
    again.cancel()


async def test_the_reason_of_a_failed_turn_follows_the_status(served: ServedChats) -> None:
    chat = await served.ann.create("one")
    error = TurnError("Acme is overloaded.", ErrorKind.OVERLOADED, "", "Acme", 529, True)
    fence = fence_of(await served.state(chat.id))
    await served.stores.chats.apply(ChatId(chat.id), FailTurn(fence, error))
    events = follow(served.ann, chat.id, cursor=(await page(served.ann, chat.id)).cursor)
    assert list(map(said, await until(events, "error"))) == ["status", "error"]
    events.cancel()


async def test_an_edit_after_the_page_resets_the_history(served: ServedChats) -> None:
    chat = await served.ann.create("one")
    await served.finish(chat.id, "answer")
    opened = await page(served.ann, chat.id)
    edit = api.EditMessageRequest(
        request_id="e", chat_id=chat.id, message_id=1, content=[text("anew")]
    )
    await served.ann.ask(edit)
    events = follow(served.ann, chat.id, cursor=opened.cursor)
    assert list(map(said, await until(events, "status"))) == ["history_reset", "anew", "status"]
    events.cancel()


async def long_chat(served: ServedChats, answers: int, size: int = 1) -> str:
    chat = await served.ann.create("one")
    for number in range(answers):
        fence = fence_of(await served.state(chat.id))
        answer = NewMessage(Role.ASSISTANT, (Text(f"{number}".ljust(size, ".")),))
        await served.stores.chats.apply(ChatId(chat.id), CommitStep(fence, (answer,)))
    return chat.id


async def test_a_page_around_a_message_has_both_sides_and_says_what_is_left(
    served: ServedChats,
) -> None:
    chat_id = await long_chat(served, 9)

    def shown(answer: api.ListMessagesResponse) -> tuple[list[int], bool, bool]:
        return ids(answer), answer.has_more, answer.has_newer

    around = [await page(served.ann, chat_id, around_id=at, limit=4) for at in (1, 5, 10, 99)]
    assert [shown(each) for each in around] == [
        ([4, 3, 2, 1], False, True),
        ([6, 5, 4, 3], True, True),
        ([10, 9, 8, 7], True, False),
        ([10, 9, 8, 7], True, False),
    ]
    assert all(each.cursor for each in around)
    assert shown(await page(served.ann, chat_id, around_id=5)) == (
        list(range(10, 0, -1)),
        False,
        False,
    )
    bounded = await page(served.ann, chat_id, before_id=5)
    assert (bounded.cursor, bounded.has_newer) == ("", False)


async def test_a_page_around_a_message_that_is_too_large_keeps_its_middle(
    served: ServedChats,
) -> None:
    chat_id = await long_chat(served, 14, size=380_000)
    around = await page(served.ann, chat_id, around_id=8, limit=14)
    assert 8 in ids(around)
    assert ids(around) == list(range(ids(around)[0], ids(around)[-1] - 1, -1))
    assert len(ids(around)) < 14
    assert (around.has_more, around.has_newer) == (True, True)


async def test_around_and_other_bounds_exclude_each_other(served: ServedChats) -> None:
    chat = await served.ann.create()
    request = api.ListMessagesRequest(chat_id=chat.id, around_id=1, before_id=3)
    assert (await served.ann.refusal(request)).reason == "INVALID_REQUEST"


async def test_a_cursor_of_a_page_stands_after_the_queue() -> None:
    assert AFTER_QUEUE == Tail.QUEUE
