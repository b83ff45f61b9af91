"""Whether the users and groups that may use a server exist, which the gateway knows."""

from collections.abc import Iterator, Sequence
from typing import Final

import grpc

from mcpgateway.servers.domain import ServerSettings
from mcpgateway.servers.errors import GroupsUnavailable, InvalidRequest
from mcpgateway.servers.groups import ASK_S
from mcpgateway.servers.validation import GRANTEES_MAX
from parley.api.identity.v1 import group_service_pb2 as groups_api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.group_service_pb2_grpc import GroupServiceStub
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.rpc import Channels, NoAddress

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
