"""Removes the shares and limits of deleted groups.

The bus publishes that a group changed; the gateway returns whether it was deleted. A notice can be
lost, so every process also checks all groups that a row names, at its start and once an hour. All
operations are idempotent and may run in several processes at once.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from chatd.offboarding.store.group_cleanup import PostgresGroupCleanup
from chatd.users.domain.groups import DeletedGroups, GroupsUnavailable
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_S = 3600.0
RETRY_EVERY_S = 60.0
GROUPS_PER_REQUEST = 500
FIRST_ID = "00000000-0000-0000-0000-000000000000"

logger = logging.getLogger(__name__)


class GroupCleanup:
    """Removes the rows that name deleted groups; `run` finds groups whose notice was lost."""

    def __init__(
        self,
        store: PostgresGroupCleanup,
        deleted: DeletedGroups,
        *,
        limits_changed: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._store = store
        self._deleted = deleted
        self._limits_changed = limits_changed
        self._clock = clock
        self._checked_s: float | None = None

    async def run(self) -> NoReturn:
        """Check all groups at the start and every hour, and retry a minute after a failure."""
        while True:
            now_s = self._clock.monotonic()
            if self._checked_s is None or now_s - self._checked_s >= CHECK_S:
                self._checked_s = now_s
                await self._trying(self._check_all())
            await self._clock.sleep(RETRY_EVERY_S)

    async def on_notice(self, group_id: str) -> None:
        """Check one group that changed."""
        await self._trying(self._settle((group_id,)))

    async def _trying(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (DatabaseUnavailable, GroupsUnavailable) as error:
            self._checked_s = None
            logger.warning("deleted groups are looked after later: %s", error)

    async def _check_all(self) -> None:
        after = FIRST_ID
        while group_ids := await self._store.named(after, GROUPS_PER_REQUEST):
            await self._settle(group_ids)
            after = group_ids[-1]

    async def _settle(self, group_ids: tuple[str, ...]) -> None:
        gone = await self._deleted.among(group_ids)
        if gone and await self._store.remove(gone):
            self._limits_changed()
