"""Users as the gateway knows them: whether they and their groups exist, and for calls."""

from collections.abc import Sequence

import grpc

from chatd.primitives.domain.errors import CheckUnavailable
from chatd.primitives.domain.ids import Owner
from chatd.users.clients.groups import ASK_S
from chatd.users.domain.grantees import Grantee, GranteeKind
from parley.api.identity.v1 import group_service_pb2 as groups_api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.group_service_pb2_grpc import GroupServiceStub
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.identity import Role, User, UserId
from parley.rpc import Channels


class GatewayGrantees:
    """Requests it from any gateway; results are not cached, because these requests are rare."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def unknown(self, grantees: Sequence[Grantee]) -> frozenset[Grantee]:
        """Return those that do not exist, at most 500 at once.

        Raises:
            CheckUnavailable: no gateway answers.
        """
        user_ids = [each.id for each in grantees if each.kind is GranteeKind.USER]
        group_ids = [each.id for each in grantees if each.kind is GranteeKind.GROUP]
        known: set[Grantee] = set()
        try:
            if user_ids:
                users = await UserServiceStub(self._channels.for_key(user_ids[0])).BatchGetUsers(
                    users_api.BatchGetUsersRequest(user_ids=user_ids), timeout=ASK_S
                )
                known |= {Grantee(GranteeKind.USER, each.user_id) for each in users.users}
            if group_ids:
                groups = await GroupServiceStub(
                    self._channels.for_key(group_ids[0])
                ).BatchGetGroups(
                    groups_api.BatchGetGroupsRequest(group_ids=group_ids), timeout=ASK_S
                )
                known |= {Grantee(GranteeKind.GROUP, each.group_id) for each in groups.groups}
        except grpc.aio.AioRpcError as error:
            raise CheckUnavailable("user or group") from error
        return frozenset(grantees) - known


def user_of(owner: Owner) -> User:
    """Return the owner of a chat as the user on whose behalf calls are made."""
    return User(UserId(owner.id), Role(owner.role))
