"""What deleted groups leave behind here: their shares and their limits are removed.

The bus says that a group changed, the gateway says whether it was deleted. A notice can be lost, so
every process also asks about all groups that something names when it starts and once an hour.
Everything here can be done twice, by any number of processes at once.
"""

import logging
from collections.abc import Callable
from typing import NoReturn

from chatd.domain.groups import DeletedGroups
from chatd.store.group_remains import PostgresGroupRemains
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_S = 3600.0
RETRY_S = 60.0
GROUPS_PER_QUESTION = 500
FIRST_ID = "00000000-0000-0000-0000-000000000000"

logger = logging.getLogger(__name__)


class GroupRemains:
    """Removes what names deleted groups; `run` finds what nobody told of."""

    def __init__(
        self,
        store: PostgresGroupRemains,
        deleted: DeletedGroups,
        *,
        limits_changed: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._store = store
        self._deleted = deleted
        self._limits_changed = limits_changed
        self._clock = clock

    async def run(self) -> NoReturn:
        """Look at the start and every hour."""
        while True:
            try:
                await self._check_all()
            except DatabaseUnavailable as error:
                logger.warning("deleted groups were not looked after: %s", error)
                await self._clock.sleep(RETRY_S)
                continue
            await self._clock.sleep(CHECK_S)

    async def heard(self, group_id: str) -> None:
        """Look after a group that changed."""
        try:
            await self._settle((group_id,))
        except DatabaseUnavailable as error:
            logger.warning("a group's change waits for the next look: %s", error)

    async def _check_all(self) -> None:
        after = FIRST_ID
        while group_ids := await self._store.named(after, GROUPS_PER_QUESTION):
            await self._settle(group_ids)
            after = group_ids[-1]

    async def _settle(self, group_ids: tuple[str, ...]) -> None:
        gone = await self._deleted.among(group_ids)
        if gone and await self._store.remove(gone):
            self._limits_changed()
