"""Wiring of the slice `chats`: stores, partial answers and live answers of a process."""

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
    """The components of chats.

    Attributes:
        chats: Their executions and histories.
        stores: All stores of chats.
        partials: Stored partial answers.
        writer: Stores partial answers.
        live: Live parts of answers under way.
        notifier: Publishes changes of chats.
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
    """Return the components; `stack` waits for writes under way."""
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
