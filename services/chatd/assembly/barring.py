"""What a process does about users who were locked out or deleted."""

from chatd.assembly.ground import Ground
from chatd.clients.standings import GatewayStandings
from chatd.domain.chat import ChatId, OwnerId
from chatd.engine.barring import Barring, BarringPorts
from chatd.store.barring import PostgresBarring
from chatd.store.stores import Stores


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
