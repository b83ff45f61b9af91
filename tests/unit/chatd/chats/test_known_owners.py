"""Whose a chat is that was made here is known without a look."""

from typing import Any, cast

import pytest

from chatd.chats.store.access.ownership import OWNERS_MAX, Ownership
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Pool

ANN = OwnerId("00000000-0000-0000-0000-00000000000a")
BOB = OwnerId("00000000-0000-0000-0000-00000000000b")


class CountedReads:
    """A database that knows no chat, and how often it was asked."""

    def __init__(self) -> None:
        self.reads = 0

    async def fetchval(self, *_: Any) -> None:
        self.reads += 1


def chat(number: int) -> ChatId:
    return ChatId(f"00000000-0000-0000-0000-{number:012}")


async def test_the_owner_of_a_chat_made_here_is_not_read() -> None:
    reads = CountedReads()
    owners = Ownership(cast(Pool, reads))
    owners.learn(chat(1), ANN)
    await owners.require(chat(1), ANN)
    with pytest.raises(ChatNotFound):
        await owners.require(chat(1), BOB)
    assert reads.reads == 0


async def test_only_so_many_owners_are_remembered() -> None:
    reads = CountedReads()
    owners = Ownership(cast(Pool, reads))
    for number in range(OWNERS_MAX + 1):
        owners.learn(chat(number), ANN)
    await owners.require(chat(OWNERS_MAX), ANN)
    with pytest.raises(ChatNotFound):
        await owners.require(chat(0), ANN)
    assert reads.reads == 1
