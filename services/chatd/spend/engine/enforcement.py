"""Enforces spend limits: when a request is admitted, and before each model call.

The limits are few and cached here; a change is published to every process. Without limits no
request is made to the ledger or a gateway. Calls that run at the same time do not see each other's
cost, so a limit can be exceeded by their total.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from chatd.content.domain.messages import TurnError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.limits import (
    LimitPeriod,
    Limits,
    SpendLimit,
    SpendStatus,
    UsageLimitReached,
    binding_limit,
    depends_on_groups,
    limit_error,
    span_of,
)
from chatd.spend.store.limits import ChatSpending
from chatd.users.domain.groups import Groups, GroupsUnavailable
from parley.cache import BoundedCache
from parley.clock import Clock

CHATS_MAX = 10_000


class SpendStore(Protocol):
    """The store of limits and of the ledger."""

    async def limits(self) -> tuple[SpendLimit, ...]:
        """Return all limits."""
        ...

    async def spent_micros(self, owner_id: OwnerId, since: datetime) -> int:
        """Return the amount that a user spent since a time."""
        ...

    async def spending_of(
        self, chat_id: ChatId, owner_id: OwnerId, since: Mapping[LimitPeriod, datetime]
    ) -> ChatSpending:
        """Return what a chat's owner spent since the start of each period, and their groups."""
        ...

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Store the groups of a chat's owner with the chat."""
        ...


class LimitedSpending:
    """Caches the limits and computes the spend status of users from the ledger."""

    def __init__(self, store: SpendStore, groups: Groups, clock: Clock) -> None:
        self._store = store
        self._present = groups
        self._clock = clock
        self._limits: Limits | None = None
        self._changes = 0
        self._groups: BoundedCache[ChatId, tuple[str, ...]] = BoundedCache(CHATS_MAX)

    def forget(self) -> None:
        """Invalidate the cached limits after a change."""
        self._changes += 1
        self._limits = None

    async def admit(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> None:
        """Check that a user may spend more.

        Raises:
            UsageLimitReached: the limit is reached.
        """
        limit = binding_limit(await self._known(), owner_id, group_ids)
        if limit is None:
            return
        spend_status = await self._spend_status(owner_id, limit)
        if spend_status.is_reached:
            raise UsageLimitReached(
                spent_micros=spend_status.spent_micros,
                limit_micros=limit.limit_micros,
                resets_at=spend_status.resets_at,
                retry_after_s=(spend_status.resets_at - self._clock.now()).total_seconds(),
            )

    async def depend_on_groups(self) -> bool:
        """Return whether a limit depends on the groups of a user."""
        return depends_on_groups(await self._known())

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Store the groups of an admitted chat's owner, if a limit depends on them."""
        if self._groups.get(chat_id) == group_ids or not depends_on_groups(await self._known()):
            return
        await self._store.remember_groups(chat_id, group_ids)
        self._groups.put(chat_id, group_ids)

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return why no model may be called for a chat now, None if one may."""
        limits = await self._known()
        if not limits:
            return None
        if depends_on_groups(limits):
            spend_status = await self._spend_status_of_chat(chat_id, owner.id, limits)
        else:
            limit = binding_limit(limits, owner.id, ())
            spend_status = None if limit is None else await self._spend_status(owner.id, limit)
        return (
            limit_error(spend_status)
            if spend_status is not None and spend_status.is_reached
            else None
        )

    async def spend_status(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> SpendStatus:
        """Return the spend status of a user; without a limit, of the current month."""
        return await self._spend_status(
            owner_id, binding_limit(await self._known(), owner_id, group_ids)
        )

    async def _spend_status(self, owner_id: OwnerId, limit: SpendLimit | None) -> SpendStatus:
        span = span_of(LimitPeriod.MONTH if limit is None else limit.period, self._clock.now())
        spent_micros = await self._store.spent_micros(owner_id, span.start)
        return SpendStatus(limit, spent_micros, span.end)

    async def _spend_status_of_chat(
        self, chat_id: ChatId, owner_id: OwnerId, limits: Limits
    ) -> SpendStatus | None:
        spans = {period: span_of(period, self._clock.now()) for period in LimitPeriod}
        starts = {period: span.start for period, span in spans.items()}
        spending = await self._store.spending_of(chat_id, owner_id, starts)
        try:
            # Not the groups of the admission: a limit or a membership may be newer than the turn.
            group_ids = await self._present.of(owner_id)
        except GroupsUnavailable:
            group_ids = spending.group_ids
        limit = binding_limit(limits, owner_id, group_ids)
        if limit is None:
            return None
        return SpendStatus(limit, spending.spent_micros[limit.period], spans[limit.period].end)

    async def _known(self) -> Limits:
        if self._limits is not None:
            return self._limits
        changes = self._changes
        limits = {limit.subject: limit for limit in await self._store.limits()}
        if changes == self._changes:
            self._limits = limits
        return limits
