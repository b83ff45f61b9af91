"""Finds users who were deleted, also those whose deletion this process was not notified of."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from mcpgateway.servers.errors import GroupsUnavailable
from mcpgateway.servers.user_values import StoredUsers
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import first_of

SWEEP_S: Final = 3600.0
RETRY_S: Final = 60.0

logger = logging.getLogger(__name__)


class Deletions(Protocol):
    """Which users were deleted."""

    async def is_deleted(self, user_id: str) -> bool:
        """Return whether a user was deleted.

        Raises:
            GroupsUnavailable: It cannot be found out now.
        """
        ...


class DeletedUsers:
    """Has all that is kept of deleted users removed: when notified, at the start, and hourly.

    Args:
        stored: The users of whom anything is stored.
        deletions: Which users were deleted.
        forget: Removes what is kept of a user; it may be repeated.
        clock: The clock of the sweeps.
    """

    def __init__(
        self,
        stored: StoredUsers,
        deletions: Deletions,
        forget: Callable[[str], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._stored = stored
        self._deletions = deletions
        self._forget = forget
        self._clock = clock
        self._unchecked: set[str] = set()
        self._asked = asyncio.Event()

    async def check(self, user_id: str) -> None:
        """Forget a user if they were deleted; if that is not known now, the next sweep does."""
        self._unchecked.add(user_id)
        try:
            await self._checked(user_id)
        except (GroupsUnavailable, DatabaseUnavailable):
            self.ask()

    def ask(self) -> None:
        """Have the users checked soon, because notices may be lost."""
        self._asked.set()

    async def run(self) -> None:
        """Check all users at the start, when asked, and periodically; retry what failed."""
        while True:
            self._asked.clear()
            try:
                await self.sweep()
            except (GroupsUnavailable, DatabaseUnavailable) as error:
                logger.info("deleted users are looked for again later: %s", error)
                # What was asked for meanwhile failed for the same reason.
                await self._clock.sleep(RETRY_S)
                continue
            await first_of(self._wait_until_asked(), lambda: self._clock.sleep(SWEEP_S))

    async def sweep(self) -> None:
        """Check the users of notices that were not answered, and all of whom anything is stored.

        Raises:
            GroupsUnavailable: It cannot be found out now who was deleted.
        """
        for user_id in tuple(self._unchecked):
            await self._checked(user_id)
        last = ""
        while page := await self._stored.page(last):
            for user_id in page:
                await self._checked(user_id)
            last = page[-1]

    async def _checked(self, user_id: str) -> None:
        if await self._deletions.is_deleted(user_id):
            await self._forget(user_id)
        self._unchecked.discard(user_id)

    async def _wait_until_asked(self) -> None:
        await self._asked.wait()
