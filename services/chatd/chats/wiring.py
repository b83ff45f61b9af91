"""The chats of a process: where they are stored, and what of them is not stored yet."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.stores import Stores
from chatd.faults import Faults
from chatd.notifications import Switchboard
from chatd.resources import Ground
from chatd.streams.engine.flush_timer import Beats
from chatd.streams.engine.live import LiveChats
from chatd.streams.engine.partials import PartialWriter
from chatd.streams.store.partials import PostgresPartials


@dataclass(frozen=True, slots=True)
class ChatRooms:
    """Where chats are kept.

    Attributes:
        chats: Their executions and histories.
        stores: All that is stored of them.
        partials: Answers that are not finished, as they are stored.
        writer: Stores those.
        live: Answers that are not finished, as readers follow them.
        switchboard: Tells what happens to chats.
    """

    chats: PostgresChats
    stores: Stores
    partials: PostgresPartials
    writer: PartialWriter
    live: LiveChats
    switchboard: Switchboard


async def open_chats(
    ground: Ground, faults: Faults, beats: Beats, stack: AsyncExitStack
) -> ChatRooms:
    """Return where chats are kept; `stack` awaits what is being written."""
    clock, switchboard = ground.process.clock, Switchboard(ground.bus)
    partials = PostgresPartials(ground.pool)
    writer = PartialWriter(partials, clock)
    live = LiveChats(writer.shown, beats=beats)
    chats = await stack.enter_async_context(
        faults.chats(ground.pool, switchboard.moved, appended=switchboard.appended)
    )
    return ChatRooms(
        chats=chats,
        stores=Stores.over(ground.pool, chats, switchboard.noted),
        partials=partials,
        writer=writer,
        live=live,
        switchboard=switchboard,
    )
