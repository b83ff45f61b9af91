"""The groups of users, read from the gateway and cached for a short time."""

from typing import Final

import grpc

from mcpgateway.servers.errors import GroupsUnavailable
from parley.api.identity.v1 import user_service_pb2 as api
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.rpc import Channels, NoAddress, problem_of

ASK_S: Final = 2.0
TTL_S: Final = 60.0
USERS_MAX: Final = 10_000
GONE: Final = "USER_DELETED"
ABSENT: Final = frozenset({"USER_NOT_FOUND", GONE})


class GatewayGroups:
    """Reads the groups of a user from any gateway; notices on the bus drop cached ones."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._channels = channels
        self._known: BoundedCache[str, frozenset[str]] = BoundedCache(
            USERS_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )

    async def of(self, user_id: str) -> frozenset[str]:
        """Return the ids of a user's groups; an unknown user has none.

        Raises:
            GroupsUnavailable: No gateway answers.
        """
        return await self._known.get_or_read(user_id, lambda: self._ask(user_id))

    async def is_deleted(self, user_id: str) -> bool:
        """Return whether the user was deleted.

        Raises:
            GroupsUnavailable: No gateway answers.
        """
        request = api.GetUserRequest(user_id=user_id)
        try:
            await UserServiceStub(self._channels.for_key(user_id)).GetUser(request, timeout=ASK_S)
        except grpc.aio.AioRpcError as error:
            reason = problem_of(error).reason
            if reason not in ABSENT:
                raise GroupsUnavailable from error
            return reason == GONE
        except NoAddress as error:
            raise GroupsUnavailable from error
        return False

    def forget(self) -> None:
        """Drop all cached groups: memberships changed, or notices may be lost."""
        self._known.clear()

    async def _ask(self, user_id: str) -> frozenset[str]:
        request = api.GetUserRequest(user_id=user_id)
        try:
            stub = UserServiceStub(self._channels.for_key(user_id))
            found = await stub.GetUser(request, timeout=ASK_S)
        except NoAddress as error:
            raise GroupsUnavailable from error
        except grpc.aio.AioRpcError as error:
            if problem_of(error).reason in ABSENT:
                return frozenset()
            raise GroupsUnavailable from error
        return frozenset(found.user.group_ids)
