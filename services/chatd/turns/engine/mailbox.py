"""What a runner learns of its chat while it works: always the newest state, never an old one."""

import asyncio

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.transitions import fence_of
from chatd.primitives.domain.ids import Fence


class Mailbox:
    """The newest known state of one chat; older news is dropped."""

    def __init__(self, state: ChatState) -> None:
        self._newest = state
        self._changed = asyncio.Event()

    @property
    def newest(self) -> ChatState:
        """The newest state known in this process."""
        return self._newest

    def put(self, state: ChatState) -> None:
        """Take news, from a commit of this process or from a read; old news is dropped."""
        if state.snapshot_version > self._newest.snapshot_version:
            self._newest = state
            self._changed.set()

    async def until_superseded(self, fence: Fence) -> ChatState:
        """Wait until work under `fence` must stop; return the state that says so.

        That is when the chat has another owner or other history, or is asked to stop.
        """
        while True:
            newest = self._newest
            if fence_of(newest) != fence or newest.status is not Status.RUNNING:
                return newest
            self._changed.clear()
            await self._changed.wait()
