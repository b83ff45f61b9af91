"""Groups of users, read from the gateway and cached.

A result is used for a minute without a new request; a notice on the bus invalidates it earlier.
While no gateway answers, a result of the last ten minutes is used, unless a notice invalidated it.
After that GroupsUnavailable is raised, and the caller decides how to continue.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import grpc

from chatd.primitives.domain.ids import OwnerId
from chatd.users.domain.groups import Groups, GroupsUnavailable
from parley.api.identity.v1 import group_service_pb2 as groups_api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.group_service_pb2_grpc import GroupServiceStub
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.rpc import Channels, problem_of

ASK_S = 2.0
FRESH_S = 60.0
STALE_S = 600.0
# After a failure no new request is made for this long.
RETRY_S = 2.0
USERS_MAX = 10_000

ABSENT = frozenset({"USER_NOT_FOUND", "USER_DELETED"})

logger = logging.getLogger(__name__)


class GatewayGroups:
    """Reads the groups of a user from any gateway."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return the ids of a user's groups; an unknown user has none.

        Raises:
            GroupsUnavailable: no gateway answers.
        """
        stub = UserServiceStub(self._channels.for_key(user_id))
        try:
            found = await stub.GetUser(users_api.GetUserRequest(user_id=user_id), timeout=ASK_S)
        except grpc.aio.AioRpcError as error:
            problem = problem_of(error)
            if problem.reason in ABSENT:
                return ()
            logger.warning("no gateway tells the groups of users: %s", problem.message)
            raise GroupsUnavailable from error
        return tuple(found.user.group_ids)


class GatewayDeletions:
    """Reads from any gateway which groups were deleted."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return those of at most 500 groups that were deleted.

        Raises:
            GroupsUnavailable: no gateway answers.
        """
        stub = GroupServiceStub(self._channels.for_key(group_ids[0]))
        try:
            entry = await stub.BatchGetGroups(
                groups_api.BatchGetGroupsRequest(group_ids=group_ids), timeout=ASK_S
            )
        except grpc.aio.AioRpcError as error:
            raise GroupsUnavailable from error
        return frozenset(entry.deleted_group_ids)


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    group_ids: tuple[str, ...]
    asked_s: float


class CachedGroups:
    """Caches the groups of recently requested users, so that few requests wait for a gateway."""

    def __init__(self, source: Groups, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._cache: BoundedCache[OwnerId, _CacheEntry] = BoundedCache(USERS_MAX)
        self._trusted_since_s = float("-inf")
        self._failed_until_s = float("-inf")
        self._forgotten = 0
        # Concurrent requests for one user share one call; a lock exists as long as a request holds
        # it.
        self._asking: WeakValueDictionary[OwnerId, asyncio.Lock] = WeakValueDictionary()

    def forget(self, user_id: OwnerId) -> None:
        """Drop the cached groups of a user who changed; they are not used again."""
        self._forgotten += 1
        self._cache.pop(user_id)

    def forget_group(self, group_id: str) -> None:
        """Drop the cached groups of all members of a group that changed."""
        members = [user for user, entry in self._cache.items() if group_id in entry.group_ids]
        self._forgotten += 1
        for user_id in members:
            self._cache.pop(user_id)

    def mark_stale(self) -> None:
        """Mark all entries as stale after lost notices; use them only while no gateway answers."""
        self._forgotten += 1
        self._trusted_since_s = self._clock.monotonic()

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return the ids of a user's groups.

        Raises:
            GroupsUnavailable: no gateway answers, and the last answer is too old.
        """
        lock = self._asking.setdefault(user_id, asyncio.Lock())
        if (fresh := self._fresh(user_id)) is not None:
            return fresh
        async with lock:
            if (fresh := self._fresh(user_id)) is not None:
                return fresh
            return await self._ask(user_id)

    def _fresh(self, user_id: OwnerId) -> tuple[str, ...] | None:
        entry = self._cache.get(user_id)
        if entry is None or entry.asked_s < self._trusted_since_s:
            return None
        if self._clock.monotonic() - entry.asked_s > FRESH_S:
            return None
        return entry.group_ids

    async def _ask(self, user_id: OwnerId) -> tuple[str, ...]:
        now_s, forgotten = self._clock.monotonic(), self._forgotten
        if now_s < self._failed_until_s:
            return self._stale(user_id)
        try:
            group_ids = await self._source.of(user_id)
        except GroupsUnavailable:
            self._failed_until_s = self._clock.monotonic() + RETRY_S
            return self._stale(user_id)
        # An invalidation during the request may concern this very result.
        if forgotten == self._forgotten:
            self._cache.put(user_id, _CacheEntry(group_ids, now_s))
        return group_ids

    def _stale(self, user_id: OwnerId) -> tuple[str, ...]:
        entry = self._cache.get(user_id)
        if entry is None or self._clock.monotonic() - entry.asked_s > STALE_S:
            raise GroupsUnavailable
        return entry.group_ids
