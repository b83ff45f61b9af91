"""Who may follow a chat: asked when they begin, and again for as long as they go on."""

from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.subscription import Close, Subscription
from chatd.streams.store.following import ChatReader
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import reader_in_groups
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_S = 4.0
# As long as the token of a call; whoever goes on longer has to show a new one.
AUTHORIZED_S = 60.0


class Permissions(Protocol):
    """Knows who may still read what."""

    async def still_readable(self, asked: Sequence[ChatReader]) -> frozenset[ChatReader]:
        """Return those readers who may still read."""
        ...


class Access:
    """Lets readers in and takes back what they may no longer read; its owner runs `run`."""

    def __init__(self, hubs: Hubs, permissions: Permissions, groups: Groups, clock: Clock) -> None:
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
        """Let a user follow a chat that they may read, and ask again from now on.

        An owner is not asked for again: they stay one as long as the chat is there.

        Raises:
            ChatNotFound: There is no such chat for this user.
            DatabaseUnavailable: Nobody can tell now.
        """
        reader = await reader_in_groups(user_id, self._groups)
        subscription, owner_id = await self._hubs.open(
            chat_id, reader, cursor=cursor, after_id=after_id, wake=wake
        )
        if owner_id != user_id:
            self._guests[subscription] = (chat_id, user_id)
        return subscription

    def authorize(self, subscription: Subscription) -> None:
        """Note that a reader has just proved who it is."""
        self._authorized_until[subscription] = self._clock.monotonic() + AUTHORIZED_S

    def leave(self, subscription: Subscription) -> None:
        """Ask no more for a reader that is gone."""
        self._guests.pop(subscription, None)
        self._authorized_until.pop(subscription, None)

    async def run(self) -> NoReturn:
        """Look every few seconds, with one statement for everybody."""
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
