"""Histories of chats that rest: as many as their bytes allow, the most recently used ones."""

from datetime import UTC, datetime

from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, MessageId
from chatd.turns.engine.history import MESSAGE_BYTES, Histories, History

AT = datetime(2026, 1, 1, tzinfo=UTC)


def chat(number: int) -> ChatId:
    return ChatId(f"00000000-0000-0000-0000-{number:012}")


def history_of(chat_id: ChatId, *texts: str) -> History:
    """Return the history of a chat whose user said these."""
    history = History()
    history.wrote(*said(chat_id, 0, len(texts)), words(*texts), AT)
    return history


def words(*texts: str) -> tuple[NewMessage, ...]:
    return tuple(NewMessage(Role.USER, (Text(text),)) for text in texts)


def said(chat_id: ChatId, before: int, count: int) -> tuple[ChatState, ChatState]:
    """Return the states around so many messages behind others."""
    return tuple(  # type: ignore[return-value]
        ChatState(chat_id, Status.RUNNING, version, version, 1, MessageId(version + 1))
        for version in (before, before + count)
    )


def test_thousands_of_short_chats_are_kept() -> None:
    histories = Histories()
    for number in range(5000):
        histories.keep(chat(number), history_of(chat(number), "hello", "hi"))
    assert all(histories.take(chat(number)).messages for number in range(5000))


def test_long_ones_make_those_leave_that_were_used_least_recently() -> None:
    long = "x" * 100_000
    histories = Histories(bytes_max=3 * (MESSAGE_BYTES + len(long)))
    for number in range(4):
        histories.keep(chat(number), history_of(chat(number), long))
        if number == 2:
            histories.keep(chat(0), histories.take(chat(0)))
    kept = [number for number in range(4) if histories.take(chat(number)).messages]
    assert kept == [0, 2, 3]


def test_what_is_written_to_a_chat_at_rest_counts() -> None:
    histories = Histories(bytes_max=2 * MESSAGE_BYTES + 100)
    histories.keep(chat(1), history_of(chat(1), "a"))
    histories.wrote(*said(chat(1), 1, 1), words("y" * 500), AT)
    histories.keep(chat(2), history_of(chat(2), "b"))
    assert not histories.take(chat(1)).messages
    assert histories.take(chat(2)).messages


def test_keeping_a_chat_twice_counts_it_once() -> None:
    histories = Histories(bytes_max=2 * MESSAGE_BYTES + 100)
    for _ in range(10):
        histories.keep(chat(1), history_of(chat(1), "a"))
    histories.keep(chat(2), history_of(chat(2), "b"))
    assert histories.take(chat(1)).messages
    assert histories.take(chat(2)).messages
