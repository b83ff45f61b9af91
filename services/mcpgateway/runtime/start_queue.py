"""The queue of calls that this process starts: bounded, and fair to users.

Starting a call takes several statements, and the process has few connections to the database.
Without a queue many calls at once would wait for connections, each statement anew, and fail where
they happen to wait too long. Here a call waits once, before its first statement, for as long as
its caller does. A place is free again when the call is journaled, or when it has to wait until its
server has room: calls that run take none, and a full server does not keep out those of others.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from mcpgateway.servers.errors import Overloaded

PLACES_MAX: Final = 32
#: Some places are left for others, whatever one user starts.
PLACES_PER_USER_MAX: Final = 24
WAITING_MAX: Final = 2000
WAIT_S_MAX: Final = 60.0


class StartQueue:
    """Places for calls that start; users take turns in getting the next one.

    Args:
        places_max: How many calls start at once.
        places_per_user_max: How many of them are of one user.
        waiting_max: How many more calls may wait.
    """

    def __init__(
        self,
        places_max: int = PLACES_MAX,
        places_per_user_max: int = PLACES_PER_USER_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._places_max = places_max
        self._places_per_user_max = places_per_user_max
        self._waiting_max = waiting_max
        self._held: Counter[str] = Counter()
        # Of those in `_held`, the ones that are free for other users.
        self._freed_count = 0
        self._waiting_count = 0
        # The user whose turn is next comes first.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, user_id: str, wait_s: float | None) -> AsyncIterator[Callable[[], None]]:
        """Hold a place as long as the context is open; yields what frees it for others earlier.

        A freed place still counts as one of the user's until the context is closed.

        Args:
            user_id: The user whose call starts.
            wait_s: How long the caller waits; None if it does not say.

        Raises:
            Overloaded: None became free in time, or too many calls wait already.
        """
        await self._take(user_id, WAIT_S_MAX if wait_s is None else min(wait_s, WAIT_S_MAX))
        is_freed = False

        def free() -> None:
            nonlocal is_freed
            if not is_freed:
                is_freed = True
                self._freed_count += 1
                self._grant_next()

        try:
            yield free
        finally:
            self._freed_count -= is_freed
            # A call whose caller left goes on, and may want to free the place only now.
            is_freed = True
            self._release(user_id)

    async def _take(self, user_id: str, wait_s: float) -> None:
        if user_id not in self._waiting and self._has_place_for(user_id):
            self._held[user_id] += 1
            return
        if self._waiting_count >= self._waiting_max:
            self._make_room(user_id)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user_id, deque()).append(granted)
        self._waiting_count += 1
        try:
            await asyncio.wait({granted}, timeout=wait_s)
        except asyncio.CancelledError:
            if granted.done():
                # A refused one holds no place.
                if granted.exception() is None:
                    self._release(user_id)
            else:
                self._leave(user_id, granted)
            raise
        if not granted.done():
            self._leave(user_id, granted)
            raise Overloaded(self._places_max)
        granted.result()

    def _make_room(self, user_id: str) -> None:
        """Refuse the last call of the user who waits with most, so that no user fills the queue.

        Raises:
            Overloaded: The user who needs the room waits with as many.
        """
        longest = max(self._waiting, key=lambda each: len(self._waiting[each]), default=user_id)
        own_count = len(self._waiting.get(user_id, ()))
        if own_count + 1 >= len(self._waiting.get(longest, ())):
            raise Overloaded(self._places_max)
        refused = self._waiting[longest][-1]
        self._leave(longest, refused)
        refused.set_exception(Overloaded(self._places_max))

    def _has_place_for(self, user_id: str) -> bool:
        is_free = self._held.total() - self._freed_count < self._places_max
        return is_free and self._held[user_id] < self._places_per_user_max

    def _leave(self, user_id: str, granted: "asyncio.Future[None]") -> None:
        waiting = self._waiting[user_id]
        waiting.remove(granted)
        self._waiting_count -= 1
        if not waiting:
            del self._waiting[user_id]

    def _release(self, user_id: str) -> None:
        self._held[user_id] -= 1
        if not self._held[user_id]:
            del self._held[user_id]
        self._grant_next()

    def _grant_next(self) -> None:
        following = next((each for each in self._waiting if self._has_place_for(each)), None)
        if following is not None:
            granted = self._waiting[following][0]
            self._leave(following, granted)
            if following in self._waiting:
                self._waiting.move_to_end(following)
            self._held[following] += 1
            granted.set_result(None)
