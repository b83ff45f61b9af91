"""Chats that look different, told from one process to the others."""

import asyncio

from chatd.bus_handlers import follow_metadata
from chatd.notifications import ChatNotifier
from chatd.primitives.domain.ids import ChatId
from parley.bus import InMemoryBus

CHAT = ChatId("00000000-0000-0000-0000-0000000000aa")


class NotedLists:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.chats: asyncio.Queue[ChatId] = asyncio.Queue()

    def metadata_changed(self, chat_id: ChatId) -> None:
        self.chats.put_nowait(chat_id)

    def on_resync(self) -> None:
        """Have nothing to look at."""

    async def yielded(self) -> None:
        """Let the other tasks go on."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turn.set_result, None)
        await turn


async def test_a_chat_that_looks_different_is_told_here_and_in_other_processes() -> None:
    bus, here, elsewhere = InMemoryBus(), NotedLists(), NotedLists()
    notifier = ChatNotifier(bus)
    notifier.connect(state_changed=(), appended=(), metadata_changed=(here.metadata_changed,))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow_metadata(bus, elsewhere))
        # It hears what is told once it follows.
        while elsewhere.chats.empty():
            notifier.metadata_changed(CHAT)
            assert await here.chats.get() == CHAT
            await here.yielded()
        following.cancel()
    assert elsewhere.chats.get_nowait() == CHAT
