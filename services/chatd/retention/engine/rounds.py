"""Rounds of retention: one process at a time looks through the trees, page by page.

All that a round did is in the rows, so that a round that was cut off is completed by the next one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, Protocol

from chatd.models.domain.preferences import InstallationSettings
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.retention.domain.retention import DueStep, Policy, Step, due_steps, policy_of
from chatd.retention.store.retention import PostgresRetention
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

EVERY_S = 600.0
PAUSE_S = 0.2
TREES_PER_PAGE = 200
FOREVER = timedelta(days=36_500)
FIRST_ID = ChatId("00000000-0000-0000-0000-000000000000")

logger = logging.getLogger(__name__)


class Trees(Protocol):
    """Archives and deletes whole trees whose notice is due and still holds."""

    async def archive_expired(self, chat_id: ChatId, *, owner_id: OwnerId) -> None:
        """Archive a tree."""
        ...

    async def delete_expired(self, chat_id: ChatId, *, owner_id: OwnerId) -> None:
        """Delete a tree."""
        ...


@dataclass(frozen=True, slots=True)
class RetentionPorts:
    """The dependencies of `RetentionRounds`.

    Attributes:
        settings: Returns the settings of the installation.
        notify: Is called for each tree whose notice changed, so that its owner is told.
        jitter: Returns a random number from 0 to 1.
    """

    store: PostgresRetention
    trees: Trees
    settings: Callable[[], Awaitable[InstallationSettings]]
    notify: Callable[[ChatId], None]
    clock: Clock
    jitter: Callable[[], float]


class RetentionRounds:
    """Gives notices, archives and deletes, at times that differ between processes."""

    def __init__(self, ports: RetentionPorts) -> None:
        self._ports = ports
        self._policy: Policy | None = None
        self._is_changed = asyncio.Event()

    def follow(self, settings: InstallationSettings) -> None:
        """Begin a round soon if the policy changed."""
        policy = policy_of(settings)
        if self._policy not in (None, policy):
            self._is_changed.set()
        self._policy = policy

    async def run(self) -> NoReturn:
        """Make a round now and then until cancelled."""
        while True:
            try:
                await self.make_round()
            except DatabaseUnavailable as outage:
                logger.warning("no round of retention: %s", outage)
            wait_s = EVERY_S * (0.75 + 0.5 * self._ports.jitter())
            await is_set_within(self._is_changed, wait_s, self._ports.clock)
            self._is_changed.clear()

    async def make_round(self) -> None:
        """Look through all trees once; ends early while another process does the same."""
        policy = policy_of(await self._ports.settings())
        after: ChatId | None = FIRST_ID
        while after is not None:
            async with self._ports.store.alone() as is_alone:
                after = await self._page(policy, after) if is_alone else None
            if after is not None:
                await self._ports.clock.sleep(PAUSE_S)
        await self._ports.store.forget_counts()

    async def _page(self, policy: Policy, after: ChatId) -> ChatId | None:
        """Do what is due for some trees; return the last of them if there may be more."""
        # Without a policy only notices are looked for, to withdraw them.
        age_min = policy.youngest
        page = await self._ports.store.trees(
            after, age_min if age_min is not None else FOREVER, TREES_PER_PAGE
        )
        if page.now is None:
            return None
        steps = due_steps(page.trees, policy, page.now)
        told = [step for step in steps if step.step in (Step.NOTICE_ARCHIVE, Step.NOTICE_PURGE)]
        withdrawn = [step for step in steps if step.step is Step.WITHDRAW]
        for chat_id in (
            *(await self._ports.store.give_notices(told) if told else ()),
            *(await self._ports.store.withdraw(withdrawn) if withdrawn else ()),
        ):
            self._ports.notify(chat_id)
        for due in steps:
            await self._end(due)
        return page.trees[-1].root_chat_id if len(page.trees) == TREES_PER_PAGE else None

    async def _end(self, due: DueStep) -> None:
        tree, trees = due.tree, self._ports.trees
        try:
            if due.step is Step.ARCHIVE:
                await trees.archive_expired(tree.root_chat_id, owner_id=tree.owner_id)
            elif due.step is Step.PURGE:
                await trees.delete_expired(tree.root_chat_id, owner_id=tree.owner_id)
        except ChatError as error:
            # It was used, pinned or deleted meanwhile; the next round judges it again.
            logger.info("a chat was left alone: %s", error, extra={"chat_id": tree.root_chat_id})
