"""What a process does about users who were locked out or deleted."""

from chatd.clients.standings import GatewayStandings
from chatd.domain.chat import ChatId, OwnerId
from chatd.engine.barring import Barring, BarringPorts
from chatd.store.barring import PostgresBarring
from chatd.store.stores import Stores
from parley.postgres import Pool
from parley.process import Process
from parley.rpc import Channels


def open_barring(gateways: Channels, stores: Stores, pool: Pool, process: Process) -> Barring:
    """Return who is barred, told by gateways."""

    async def delete(chat_id: ChatId, owner_id: OwnerId) -> None:
        await stores.families.delete(chat_id, owner_id=owner_id)

    return Barring(
        BarringPorts(
            PostgresBarring(pool),
            GatewayStandings(gateways),
            stores.chats.apply,
            delete,
            process.clock,
        )
    )
