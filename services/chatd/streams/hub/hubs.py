"""The hubs of this process: created with a chat's first reader, dropped with its last."""

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from datetime import datetime
from typing import Any, NoReturn, Protocol

from chatd.chats.domain.chat import ChatState, Message, NewMessage
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.engine.live import LiveChats, LivePart
from chatd.streams.hub.hub import Hub, HubPorts
from chatd.streams.hub.reads import BatchedReads, BatchReader
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import Position, position_in
from chatd.streams.rpc.subscription import Close, Subscription
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import Starter

POLL_S = 5.0


class Relays(Protocol):
    """Fetches live parts from the processes that run the chats."""

    def target(self, state: ChatState) -> None:
        """Fetch the parts of a chat from its owner from now on, if that is another process."""
        ...

    def drop(self, chat_id: ChatId) -> None:
        """Stop fetching the parts of a chat."""
        ...


class Hubs:
    """Finds the hub of a chat and forwards events to it; its owner runs `run`."""

    def __init__(
        self,
        reads: BatchReader,
        live: LiveChats,
        *,
        relays: Relays,
        tasks: Starter,
        clock: Clock,
        on_activity: Callable[[], None] = lambda: None,
    ) -> None:
        """Create hubs on demand.

        Args:
            reads: The database.
            live: The live parts of this process.
            relays: Fetches the live parts of other processes.
            tasks: Owns the tasks of all hubs.
            clock: Time.
            on_activity: Is called when any chat changed, in any process.
        """
        self._on_activity = on_activity
        self._reads = BatchedReads(reads, self._spawn)
        self._live = live
        self._relays = relays
        self._tasks = tasks
        self._context = copy_context()
        self._clock = clock
        self._hubs: dict[ChatId, Hub] = {}
        self._appended: dict[ChatId, tuple[int, tuple[Message, ...]]] = {}
        self._is_closed = False
        self.drops = Drops(clock)
        live.listen(self._shown)

    def __len__(self) -> int:
        return len(self._hubs)

    async def open(
        self,
        chat_id: ChatId,
        reader: Reader,
        *,
        cursor: str,
        after_id: int,
        wake: Callable[[Subscription], None],
    ) -> tuple[Subscription, OwnerId]:
        """Subscribe a reader to a chat that it may read; return also the chat's owner.

        Raises:
            ChatNotFound: There is no such chat that the reader may read.
            DatabaseUnavailable: The permission cannot be checked now.
        """
        hub = self._hub(chat_id)
        # From now on the hub records commits, so that none is lost between this and the read.
        hub.expected += 1
        try:
            owner_id = await hub.owner_for(reader, _position(chat_id, cursor, after_id))
            if owner_id is None:
                raise ChatNotFound(chat_id)
            return self.follow(chat_id, cursor, after_id, wake), owner_id
        finally:
            hub.expected -= 1
            self._drop_unused(hub)

    def follow(
        self, chat_id: ChatId, cursor: str, after_id: int, wake: Callable[[Subscription], None]
    ) -> Subscription:
        """Subscribe to a chat that the reader may read, from a cursor on if there is one.

        Args:
            chat_id: The chat.
            cursor: The position to resume from; empty for everything.
            after_id: Without a cursor, only messages with a larger id.
            wake: Is called when the subscription has events to send.
        """
        position = _position(chat_id, cursor, after_id)
        subscription = Subscription(position or Position(), wake)
        subscription.open()
        if position is None:
            subscription.close(Close.RESYNC)
        elif self._is_closed:
            subscription.close(Close.GOING_AWAY)
        else:
            self._hub(chat_id).join(subscription)
        return subscription

    def leave(self, chat_id: ChatId, subscription: Subscription) -> None:
        """Remove a reader; the hub is dropped with its last reader."""
        subscription.close(Close.UNSUBSCRIBED, drop=True)
        hub = self._hubs.get(chat_id)
        if hub is None:
            return
        hub.leave(subscription)
        self._drop_unused(hub)

    def appended(
        self,
        before: ChatState,
        after: ChatState,
        messages: tuple[NewMessage, ...],
        at: datetime | None,
    ) -> None:
        """Record the messages of a commit of this process; `state_changed` is called next."""
        if at is None or after.chat_id not in self._hubs:
            return
        first_id, version = before.next_message_id, after.snapshot_version
        written = tuple(
            message.stored(MessageId(first_id + place), version, at)
            for place, message in enumerate(messages)
        )
        self._appended[after.chat_id] = (version, written)

    def state_changed(self, state: ChatState) -> None:
        """Apply a state that this process committed."""
        self._on_activity()
        version, messages = self._appended.pop(state.chat_id, (0, ()))
        hub = self._hubs.get(state.chat_id)
        if hub is not None:
            is_known = version == state.snapshot_version
            hub.committed(state, messages if is_known else None)

    def on_notice(self, chat_id: ChatId, version: int) -> None:
        """Handle a notification that a chat reached a version, in any process."""
        self._on_activity()
        hub = self._hubs.get(chat_id)
        if hub is not None:
            hub.on_notice(version)

    def on_resync(self) -> None:
        """Read all followed chats again, because notifications may have been lost."""
        self._on_activity()
        for hub in self._hubs.values():
            hub.suspect()

    def relayed(self, chat_id: ChatId, episode: tuple[int, int], seq: int, body: bytes) -> None:
        """Forward a live part from the process that runs the chat."""
        hub = self._hubs.get(chat_id)
        if hub is not None:
            hub.relayed(episode, seq, body)

    def seen_of(self, chat_id: ChatId) -> tuple[tuple[int, int], int]:
        """Return the open episode of a chat and the number of its last part received here."""
        hub = self._hubs.get(chat_id)
        if hub is None or hub.head is None:
            return (0, 0), 0
        return hub.head.episode, hub.last_seq

    def version_of(self, chat_id: ChatId) -> int:
        """Return the version at which a chat is followed here; 0 if it is not."""
        hub = self._hubs.get(chat_id)
        return 0 if hub is None or hub.head is None else hub.head.version

    def close(self) -> None:
        """Close all subscriptions, because this process stops."""
        self._is_closed = True
        for hub in self._hubs.values():
            hub.close(Close.GOING_AWAY)

    async def run(self) -> NoReturn:
        """Poll the versions of all followed chats, for changes without a notification."""
        while True:
            await self._clock.sleep(POLL_S)
            asked = [chat_id for chat_id, hub in self._hubs.items() if hub.head is not None]
            if not asked:
                continue
            try:
                versions = await self._reads.versions(asked)
            except DatabaseUnavailable:
                continue
            for chat_id in asked:
                # A chat that is gone is read too, which closes its subscriptions.
                hub = self._hubs.get(chat_id)
                if hub is not None:
                    hub.on_notice(versions.get(chat_id, 2**63))

    def _shown(self, chat_id: ChatId, part: LivePart) -> None:
        hub = self._hubs.get(chat_id)
        if hub is not None:
            hub.broadcast.shown(part)

    def _hub(self, chat_id: ChatId) -> Hub:
        hub = self._hubs.get(chat_id)
        if hub is None:
            hub = self._hubs[chat_id] = Hub(chat_id, self._ports())
        return hub

    def _drop_unused(self, hub: Hub) -> None:
        if hub.is_unused:
            del self._hubs[hub.chat_id]
            self._relays.drop(hub.chat_id)
            self.drops.forget(hub.chat_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> object:
        return self._tasks.create_task(work, context=self._context.copy())

    def _ports(self) -> HubPorts:
        return HubPorts(
            reads=self._reads,
            live_parts=self._live.parts,
            retarget=self._relays.target,
            spawn=self._spawn,
            drops=self.drops,
            clock=self._clock,
        )


def _position(chat_id: ChatId, cursor: str, after_id: int) -> Position | None:
    """Return the position at which a reader starts; None if the cursor is not one of this chat."""
    return position_in(chat_id, cursor) if cursor else Position(row=after_id)
