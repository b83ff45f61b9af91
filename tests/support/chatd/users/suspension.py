"""The suspension of users over the chats that a test serves."""

from chatd.offboarding.engine.suspended_users import UserSuspension, UserSuspensionPorts
from chatd.offboarding.store.suspended_users import PostgresSuspendedUsers
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.clock import FakeClock
from support.chatd.chats.served_chats import ServedChats
from support.chatd.users.fixed_users import FixedUserStatuses


def suspension_of(
    served: ServedChats, statuses: FixedUserStatuses, clock: FakeClock
) -> UserSuspension:
    """Return the suspension, with the statuses that the test decides."""

    async def delete(chat_id: ChatId, owner_id: OwnerId) -> None:
        await served.stores.trees.delete(chat_id, owner_id=owner_id)

    return UserSuspension(
        UserSuspensionPorts(
            PostgresSuspendedUsers(served.pool), statuses, served.stores.chats.apply, delete, clock
        )
    )
