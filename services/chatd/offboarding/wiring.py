"""What a process does about users who were locked out or deleted."""

from chatd.chats.store.stores import Stores
from chatd.offboarding.engine.suspended_users import Barring, BarringPorts
from chatd.offboarding.store.suspended_users import PostgresBarring
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.resources import Ground
from chatd.users.clients.statuses import GatewayStandings


def open_barring(ground: Ground, stores: Stores) -> Barring:
    """Return who is barred, told by gateways."""

    async def delete(chat_id: ChatId, owner_id: OwnerId) -> None:
        await stores.families.delete(chat_id, owner_id=owner_id)

    return Barring(
        BarringPorts(
            PostgresBarring(ground.pool),
            GatewayStandings(ground.gateways),
            stores.chats.apply,
            delete,
            ground.process.clock,
        )
    )
