"""The users and groups of servers: read from the gateway, the groups cached for a short time."""

from collections.abc import Iterator, Sequence
from typing import Final

import grpc

from mcpgateway.servers.domain import ServerSettings
from mcpgateway.servers.errors import GroupsUnavailable, InvalidRequest
from mcpgateway.servers.validation import GRANTEES_MAX
from parley.api.identity.v1 import group_service_pb2 as groups_api
from parley.api.identity.v1 import user_service_pb2 as api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.group_service_pb2_grpc import GroupServiceStub
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


IDS_SHOWN_MAX: Final = 5


class Grantees:
    """Asks any gateway; answers are not cached, because servers are seldom changed."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def require(self, settings: ServerSettings, stored: ServerSettings | None) -> None:
        """Require that all users and groups of settings exist or are already stored.

        More than there may be are not asked for; the check of the settings refuses them.

        Raises:
            InvalidRequest: Some do not exist.
            GroupsUnavailable: No gateway answers.
        """
        user_ids = _added(settings.user_ids, () if stored is None else stored.user_ids)
        group_ids = _added(settings.group_ids, () if stored is None else stored.group_ids)
        try:
            known_users = await self._users(user_ids) if user_ids else frozenset()
            known_groups = await self._groups(group_ids) if group_ids else frozenset()
        except (NoAddress, grpc.aio.AioRpcError) as error:
            raise GroupsUnavailable from error
        problems = {
            **dict(_problem("user", user_ids, known_users)),
            **dict(_problem("group", group_ids, known_groups)),
        }
        if problems:
            raise InvalidRequest(problems)

    async def _users(self, user_ids: Sequence[str]) -> frozenset[str]:
        request = users_api.BatchGetUsersRequest(user_ids=user_ids)
        stub = UserServiceStub(self._channels.for_key(user_ids[0]))
        found = await stub.BatchGetUsers(request, timeout=ASK_S)
        return frozenset(each.user_id for each in found.users)

    async def _groups(self, group_ids: Sequence[str]) -> frozenset[str]:
        request = groups_api.BatchGetGroupsRequest(group_ids=group_ids)
        stub = GroupServiceStub(self._channels.for_key(group_ids[0]))
        found = await stub.BatchGetGroups(request, timeout=ASK_S)
        return frozenset(each.group_id for each in found.groups)


def _added(ids: Sequence[str], stored: Sequence[str]) -> Sequence[str]:
    added = [each for each in ids if each not in stored]
    return added if len(ids) <= GRANTEES_MAX else ()


def _problem(kind: str, ids: Sequence[str], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    unknown = [each[:64] for each in ids if each not in known]
    if unknown:
        shown = ", ".join(unknown[:IDS_SHOWN_MAX])
        yield f"settings.{kind}_ids", f"there is no {kind} {shown}"
