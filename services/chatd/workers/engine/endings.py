"""Ends workers whose process is proven dead."""

import logging
from collections.abc import Callable

from chatd.chats.domain.chat import ChatState
from chatd.primitives.domain.ids import WorkerId
from chatd.workers.domain import Leases, is_ownerless

logger = logging.getLogger(__name__)


class WorkerEndings:
    """Ends workers and publishes the new states of their chats, which wakes the sweeps of all."""

    def __init__(self, leases: Leases, state_changed: Callable[[ChatState], None]) -> None:
        self._leases = leases
        self._state_changed = state_changed

    async def end(self, worker_id: WorkerId) -> int:
        """End a worker; return how many chats wait for another owner.

        Only with a proof of death: the parent waited for the process, or its instance file could be
        locked.
        """
        left = await self._leases.end(worker_id)
        for state in left:
            if not is_ownerless(state):
                logger.error("a chat was parked", extra={"chat_id": state.chat_id})
            self._state_changed(state)
        released = sum(map(is_ownerless, left))
        if left:
            details = {"worker_id": worker_id, "released_chats": released}
            logger.warning("a worker has died and its chats were released", extra=details)
        return released
