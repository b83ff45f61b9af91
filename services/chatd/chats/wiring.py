"""The chats of a process: where they are stored, and what of them is not stored yet."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.stores import Stores
from chatd.faults import Faults
from chatd.notifications import ChatNotifier
from chatd.resources import Resources
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.engine.live import LiveChats
from chatd.streams.engine.partials import PartialWriter
from chatd.streams.store.partials import PostgresPartials


@dataclass(frozen=True, slots=True)
class ChatComponents:
    """Where chats are kept.

    Attributes:
        chats: Their executions and histories.
        stores: All that is stored of them.
        partials: Answers that are not finished, as they are stored.
        writer: Stores those.
        live: Answers that are not finished, as readers follow them.
        notifier: Tells what happens to chats.
    """

    chats: PostgresChats
    stores: Stores
    partials: PostgresPartials
    writer: PartialWriter
    live: LiveChats
    notifier: ChatNotifier


async def open_chats(
    resources: Resources, faults: Faults, flush_timer: FlushTimer, stack: AsyncExitStack
) -> ChatComponents:
    """Return where chats are kept; `stack` awaits what is being written."""
    clock, notifier = resources.process.clock, ChatNotifier(resources.bus)
    partials = PostgresPartials(resources.pool)
    writer = PartialWriter(partials, clock)
    live = LiveChats(writer.shown, flush_timer=flush_timer)
    chats = await stack.enter_async_context(
        faults.chats(resources.pool, notifier.state_changed, appended=notifier.appended)
    )
    return ChatComponents(
        chats=chats,
        stores=Stores.over(resources.pool, chats, notifier.metadata_changed),
        partials=partials,
        writer=writer,
        live=live,
        notifier=notifier,
    )
