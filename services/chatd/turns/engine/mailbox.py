"""State updates of a chat for its runner: always the newest state, never an older one."""

import asyncio

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.transitions import fence_of
from chatd.primitives.domain.ids import Fence


class Mailbox:
    """The newest known state of one chat."""

    def __init__(self, state: ChatState) -> None:
        self._newest = state
        self._changed = asyncio.Event()

    @property
    def newest(self) -> ChatState:
        """The newest state known in this process."""
        return self._newest

    def put(self, state: ChatState) -> None:
        """Set the state, from a commit of this process or from a read; an older one is ignored."""
        if state.snapshot_version > self._newest.snapshot_version:
            self._newest = state
            self._changed.set()

    async def until_superseded(self, fence: Fence) -> ChatState:
        """Wait until work under `fence` must stop; return the state that requires it.

        That is when the chat has another owner or another history, or is asked to stop.
        """
        while True:
            newest = self._newest
            if fence_of(newest) != fence or newest.status is not Status.RUNNING:
                return newest
            self._changed.clear()
            await self._changed.wait()
