"""Reads the status of users from the gateway."""

import logging
from collections.abc import Sequence

import grpc

from chatd.primitives.domain.ids import OwnerId
from chatd.users.domain.status import UserStatus
from parley.api.identity.v1 import user_pb2
from parley.api.identity.v1 import user_service_pb2 as api
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.rpc import Channels, problem_of

STATES = {
    user_pb2.USER_STATE_ACTIVE: UserStatus.ACTIVE,
    user_pb2.USER_STATE_DEACTIVATED: UserStatus.DEACTIVATED,
}

logger = logging.getLogger(__name__)


class GatewayUserStatuses:
    """Reads statuses from any gateway."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        """Return the status of each of at most 500 users; empty while no gateway answers."""
        stub = UserServiceStub(self._channels.for_key(user_ids[0]))
        try:
            found = await stub.BatchGetUsers(api.BatchGetUsersRequest(user_ids=user_ids))
        except grpc.aio.AioRpcError as error:
            logger.info("no gateway tells the status of users: %s", problem_of(error).message)
            return {}
        statuses = {
            OwnerId(user.user_id): STATES.get(user.state, UserStatus.UNKNOWN)
            for user in found.users
        }
        for user_id in user_ids:
            if user_id not in statuses:
                statuses[user_id] = await self._of_absent(stub, user_id)
        return statuses

    async def _of_absent(self, stub: UserServiceStub, user_id: OwnerId) -> UserStatus:
        """Distinguish a deleted user from one that never existed."""
        try:
            await stub.GetUser(api.GetUserRequest(user_id=user_id))
        except grpc.aio.AioRpcError as error:
            is_deleted = problem_of(error).reason == "USER_DELETED"
            return UserStatus.DELETED if is_deleted else UserStatus.UNKNOWN
        return UserStatus.UNKNOWN
