"""The shared streams to chatd: one to each process, which carries the subscriptions of all clients.

A chat is followed at the process that its id prefers, which normally runs it. When a process goes
away, or says that it will, each of its subscriptions goes on at the next one, behind the last event
that was passed on; the client notices nothing. When one comes, those that prefer it move there: a
chat that is followed elsewhere than where it runs costs both processes, and is told of later.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

import grpc

from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.event_source import Ending, EventSink
from gateway.streams.frames import Frames
from gateway.streams.link import Link
from gateway.streams.subscription import LinkSubscription
from gateway.streams.tunnel import CallTunnel, LinkLost
from parley.clock import Clock
from parley.identity import User
from parley.rpc import Address, CallTokens, Channels, Problem, ranked
from parley.tasks import Starter

RENEW_S = 25.0
# A crowd that comes at once waits for its turn rather than being sent away to come again.
OPEN_S_MAX = 30.0
RETRY_S = 0.25
RETRIES_MAX = 60
# So many move together to a process that came; then others have a turn.
MOVE_BATCH = 100
MOVE_PAUSE_S = 0.05

CHAT_NOT_FOUND = Problem(
    grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", "There is no such chat, or you may not see it."
)
NO_CHATD = Problem(
    grpc.StatusCode.UNAVAILABLE, "UPSTREAM_UNAVAILABLE", "no chatd answers", retry_after_s=2.0
)

_log = logging.getLogger(__name__)


class Links:
    """Follows chats for clients; its owner gives it a task group and runs `run`."""

    def __init__(
        self,
        channels: Channels,
        signer: CallTokens,
        *,
        tasks: Starter,
        clock: Clock,
        is_live: Callable[[Address], bool] = lambda address: True,
    ) -> None:
        """Reach the processes that `channels` know.

        Args:
            channels: The processes.
            signer: Names the users to them.
            tasks: Owns everything that goes on between requests.
            clock: Time.
            is_live: Tells which of the processes are worth trying first.
        """
        self._channels = channels
        self._signer = signer
        self._tasks = tasks
        self._clock = clock
        self._is_live = is_live
        self._frames = Frames()
        self._links: dict[Address, Link] = {}
        self._ids = itertools.count(1)
        self._readers: dict[str, int] = {}
        self._is_closed = False

    async def open(
        self, user: User, chat_id: str, reader: EventSink, *, cursor: str, after_id: int
    ) -> LinkSubscription:
        """Begin to follow a chat for a user.

        Raises:
            UpstreamProblem: There is no such chat for this user, or nobody answers.
        """
        subscription = LinkSubscription(
            next(self._ids), user, chat_id, reader, cursor=cursor, after_id=after_id
        )
        return await self._begin(subscription)

    async def open_feed(self, user: User, reader: EventSink, *, cursor: str) -> LinkSubscription:
        """Begin to follow a user's list of chats.

        Raises:
            UpstreamProblem: Nobody answers.
        """
        subscription = LinkSubscription(
            next(self._ids), user, "", reader, cursor=cursor, after_id=0
        )
        return await self._begin(subscription)

    async def run(self) -> None:
        """Renew the proof of every user before it expires."""
        while True:
            await self._clock.sleep(RENEW_S)
            for link in list(self._links.values()):
                link.renew_all()

    async def rebalance(self) -> None:
        """Let every subscription go on at the process that it prefers now."""
        moved = 0
        for address, link in list(self._links.items()):
            for subscription in link.carried():
                if subscription.link is not link or self._prefers(subscription, address):
                    continue
                link.remove(subscription)
                self._move(subscription, address)
                moved += 1
                if moved % MOVE_BATCH == 0:
                    await self._clock.sleep(MOVE_PAUSE_S)

    def tunnel_to(self, address: Address) -> CallTunnel | None:
        """Return what carries calls to a process, if a stream to it stands."""
        link = self._links.get(address)
        return None if link is None else link.tunnel

    def close(self) -> None:
        """Let go of every stream, for good."""
        self._is_closed = True
        for link in list(self._links.values()):
            link.close()

    async def _begin(self, subscription: LinkSubscription) -> LinkSubscription:
        subscription.when_closed = self._left
        if subscription.chat_id:
            self._readers[subscription.chat_id] = self._readers.get(subscription.chat_id, 0) + 1
        try:
            async with asyncio.timeout(OPEN_S_MAX):
                await self._place(subscription)
                ending = await subscription.opened
        except TimeoutError:
            subscription.close()
            raise UpstreamProblem(NO_CHATD) from None
        except BaseException:
            subscription.close()
            raise
        if ending is Ending.NOT_FOUND:
            raise UpstreamProblem(CHAT_NOT_FOUND)
        return subscription

    def is_shared(self, chat_id: str) -> bool:
        """Return whether several clients here follow a chat."""
        return self._readers.get(chat_id, 0) > 1

    def _left(self, subscription: LinkSubscription) -> None:
        left = self._readers.get(subscription.chat_id, 0) - 1
        if left > 0:
            self._readers[subscription.chat_id] = left
        else:
            self._readers.pop(subscription.chat_id, None)

    async def _place(self, subscription: LinkSubscription, *, avoid: Address | None = None) -> None:
        """Put a subscription on the link that it prefers and that can be had.

        Raises:
            UpstreamProblem: None can.
        """
        for tries in range(RETRIES_MAX):
            for address in self.preferred(subscription.key, avoid if tries == 0 else None):
                if subscription.is_closed or self._is_closed:
                    return
                with suppress(LinkLost):
                    link = await self._link(address)
                    link.add(subscription)
                    return
            await self._clock.sleep(RETRY_S)
        raise UpstreamProblem(NO_CHATD)

    def _prefers(self, subscription: LinkSubscription, address: Address) -> bool:
        return next(iter(self.preferred(subscription.key)), address) == address

    def preferred(self, key: str, avoid: Address | None = None) -> Iterable[Address]:
        """Return the processes in the order in which a chat or user prefers them.

        Those that are away or going come last, and very last the one to avoid.
        """
        order = ranked(key, self._channels.addresses)
        # Sorting is stable: among those alike the order stays as the key prefers it.
        return sorted(order, key=lambda each: (each == avoid, not self._is_live(each)))

    async def _link(self, address: Address) -> Link:
        link = self._links.get(address)
        if link is None or link.is_over:
            link = Link(
                self._channels.at(address),
                self._signer,
                frames=self._frames,
                is_shared=self.is_shared,
                moving=lambda subscription: self._move(subscription, address),
                clock=self._clock,
            )
            self._links[address] = link
            self._tasks.create_task(self._run(address, link))
        await link.wait_connected()
        return link

    async def _run(self, address: Address, link: Link) -> None:
        try:
            await link.run()
        except Exception:
            # A stream that fails for whatever reason must not take the others along.
            _log.exception("a stream to a chatd failed")
        finally:
            if self._links.get(address) is link:
                del self._links[address]
        for subscription in link.left():
            self._move(subscription, address)

    def _move(self, subscription: LinkSubscription, address: Address) -> None:
        """Let a subscription go on elsewhere."""
        if not subscription.is_closed and not self._is_closed:
            self._tasks.create_task(self._moved(subscription, address))

    async def _moved(self, subscription: LinkSubscription, address: Address) -> None:
        delay_s = subscription.delay_s()
        if delay_s:
            await self._clock.sleep(delay_s)
        try:
            await self._place(subscription, avoid=address)
        except UpstreamProblem:
            _log.warning("a stream ends because no chatd could be reached")
            subscription.end(Ending.GOING_AWAY)
        except Exception:
            # Its client would hear nothing any more; it comes again.
            subscription.end(Ending.GOING_AWAY)
            raise
