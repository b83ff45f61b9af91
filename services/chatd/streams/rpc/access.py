"""Permissions of readers: checked on subscribe, and again periodically."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, Protocol

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.subscription import Close, Subscription
from chatd.streams.store.chat_reads import ChatReader
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import reader_in_groups
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_S = 4.0
# The lifetime of a call's token; a longer subscription has to be renewed with a new one.
AUTHORIZED_S = 60.0


#: Is called with every chat of another that somebody follows.
ReadRecord = Callable[[ChatId, Reader], Awaitable[None]]


async def nothing_recorded(chat_id: ChatId, reader: Reader) -> None:
    """Record nothing."""


class Permissions(Protocol):
    """Checks which readers may still read which chats."""

    async def still_readable(self, asked: Sequence[ChatReader]) -> frozenset[ChatReader]:
        """Return those readers that may still read."""
        ...


class Access:
    """Opens subscriptions and closes those that lost their permission; its owner runs `run`."""

    def __init__(
        self,
        hubs: Hubs,
        permissions: Permissions,
        groups: Groups,
        clock: Clock,
        record_read: ReadRecord = nothing_recorded,
    ) -> None:
        self._record_read = record_read
        self._hubs = hubs
        self._permissions = permissions
        self._groups = groups
        self._clock = clock
        self._guests: dict[Subscription, tuple[ChatId, OwnerId]] = {}
        self._authorized_until: dict[Subscription, float] = {}

    async def open(
        self,
        chat_id: ChatId,
        user_id: OwnerId,
        *,
        cursor: str,
        after_id: int,
        wake: Callable[[Subscription], None],
    ) -> Subscription:
        """Subscribe a user to a chat that they may read, and check the permission periodically.

        The owner is not checked again: a chat keeps its owner for as long as it exists.

        Raises:
            ChatNotFound: There is no such chat for this user.
            DatabaseUnavailable: The permission cannot be checked now.
        """
        reader = await reader_in_groups(user_id, self._groups)
        subscription, owner_id = await self._hubs.open(
            chat_id, reader, cursor=cursor, after_id=after_id, wake=wake
        )
        if owner_id != user_id:
            self._guests[subscription] = (chat_id, user_id)
            await self._record_read(chat_id, reader)
        return subscription

    def authorize(self, subscription: Subscription) -> None:
        """Record that a reader has just presented a valid token."""
        self._authorized_until[subscription] = self._clock.monotonic() + AUTHORIZED_S

    def leave(self, subscription: Subscription) -> None:
        """Stop checking a reader that has left."""
        self._guests.pop(subscription, None)
        self._authorized_until.pop(subscription, None)

    async def run(self) -> NoReturn:
        """Check all subscriptions every few seconds, with one statement."""
        while True:
            await self._clock.sleep(CHECK_S)
            now = self._clock.monotonic()
            for subscription, until in list(self._authorized_until.items()):
                if until < now:
                    subscription.close(Close.INTERNAL)
            await self._check_guests()

    async def _check_guests(self) -> None:
        guests = dict(self._guests)
        if not guests:
            return
        asked = {
            subscription: ChatReader(chat_id, await reader_in_groups(user_id, self._groups))
            for subscription, (chat_id, user_id) in guests.items()
        }
        try:
            good = await self._permissions.still_readable(tuple(dict.fromkeys(asked.values())))
        except DatabaseUnavailable:
            return
        for subscription, followed in asked.items():
            if followed not in good:
                subscription.close(Close.NOT_FOUND, drop=True)
