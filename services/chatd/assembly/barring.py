"""What a process does about users who were locked out or deleted."""

from contextlib import AsyncExitStack

import asyncpg

from chatd.clients.standings import GatewayStandings
from chatd.domain.chat import ChatId, OwnerId
from chatd.engine.barring import Barring, BarringPorts
from chatd.settings import Settings
from chatd.store.barring import PostgresBarring
from chatd.store.stores import Stores
from parley.identity import ServiceName
from parley.process import Neighbours, Process


async def open_barring(
    settings: Settings,
    neighbours: Neighbours,
    stores: Stores,
    pool: "asyncpg.Pool[asyncpg.Record]",
    process: Process,
    stack: AsyncExitStack,
) -> Barring:
    """Return who is barred, told by gateways over channels that the stack closes."""
    gateways = await stack.enter_async_context(
        neighbours.channels(ServiceName.GATEWAY, settings.gateway)
    )

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
