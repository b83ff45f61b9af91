"""Wiring of the slice `offboarding`."""

from chatd.chats.store.stores import Stores
from chatd.offboarding.engine.suspended_users import UserSuspension, UserSuspensionPorts
from chatd.offboarding.store.suspended_users import PostgresSuspendedUsers
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.resources import Resources
from chatd.users.clients.statuses import GatewayUserStatuses


def open_suspension(resources: Resources, stores: Stores) -> UserSuspension:
    """Return the suspension of users, with statuses read from gateways."""

    async def delete(chat_id: ChatId, owner_id: OwnerId) -> None:
        await stores.trees.delete(chat_id, owner_id=owner_id)

    return UserSuspension(
        UserSuspensionPorts(
            PostgresSuspendedUsers(resources.pool),
            GatewayUserStatuses(resources.gateways),
            stores.chats.apply,
            delete,
            resources.process.clock,
        )
    )
