"""The shared streams to chatd: one to each process, with the subscriptions of all clients.

A chat is followed at the process that its id hashes to, which normally runs it. When a process
becomes unavailable or drains, each of its subscriptions continues at the next one, after the last
event that was passed on; the client is not affected. When a process joins, the subscriptions that
prefer it move there: a chat that is followed at another process than its owner costs both
processes, and its events arrive later.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

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
# When many clients connect at once they wait, instead of being rejected and connecting again.
OPEN_S_MAX = 30.0
RETRY_S = 0.25
RETRIES_MAX = 60
# How many subscriptions move together to a process that joined, before other work continues.
MOVE_BATCH = 100
MOVE_PAUSE_S = 0.05

CHAT_NOT_FOUND = Problem.of("CHAT_NOT_FOUND", "There is no such chat, or you may not see it.")
NO_CHATD = Problem.of("UPSTREAM_UNAVAILABLE", "no chatd answers", retry_after_s=2.0)

_log = logging.getLogger(__name__)


class Links:
    """Subscribes to chats for clients; its owner provides a task group and runs `run`."""

    def __init__(
        self,
        channels: Channels,
        signer: CallTokens,
        *,
        tasks: Starter,
        clock: Clock,
        frames: Frames,
        is_live: Callable[[Address], bool] = lambda address: True,
    ) -> None:
        """Use the processes of `channels`.

        Args:
            channels: The processes.
            signer: Signs tokens for the users.
            tasks: Owns the tasks between requests.
            clock: The clock.
            frames: Converts events for clients.
            is_live: Returns whether a process is to be tried first.
        """
        self._channels = channels
        self._signer = signer
        self._tasks = tasks
        self._clock = clock
        self._is_live = is_live
        self._frames = frames
        self._links: dict[Address, Link] = {}
        self._ids = itertools.count(1)
        self._readers: dict[str, int] = {}
        self._is_closed = False

    async def open(
        self, user: User, chat_id: str, reader: EventSink, *, cursor: str, after_id: int
    ) -> LinkSubscription:
        """Subscribe to a chat for a user.

        Raises:
            UpstreamProblem: There is no such chat for this user, or no process responds.
        """
        subscription = LinkSubscription(
            next(self._ids), user, chat_id, reader, cursor=cursor, after_id=after_id
        )
        return await self._begin(subscription)

    async def open_feed(self, user: User, reader: EventSink, *, cursor: str) -> LinkSubscription:
        """Subscribe to a user's list of chats.

        Raises:
            UpstreamProblem: No process responds.
        """
        subscription = LinkSubscription(
            next(self._ids), user, "", reader, cursor=cursor, after_id=0
        )
        return await self._begin(subscription)

    async def run(self) -> None:
        """Renew the tokens of all subscriptions before they expire."""
        while True:
            await self._clock.sleep(RENEW_S)
            for link in list(self._links.values()):
                link.renew_all()

    async def rebalance(self) -> None:
        """Move every subscription to the process that it prefers now."""
        moved = 0
        for address, link in list(self._links.items()):
            for subscription in link.subscriptions():
                if subscription.link is not link or self._prefers(subscription, address):
                    continue
                link.remove(subscription)
                self._move(subscription, address)
                moved += 1
                if moved % MOVE_BATCH == 0:
                    await self._clock.sleep(MOVE_PAUSE_S)

    def tunnel_to(self, address: Address) -> CallTunnel | None:
        """Return the call tunnel to a process, if its stream is connected."""
        link = self._links.get(address)
        return None if link is None else link.tunnel

    def close(self) -> None:
        """Close all streams permanently."""
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
        """Return whether several clients of this gateway follow a chat."""
        return self._readers.get(chat_id, 0) > 1

    def _left(self, subscription: LinkSubscription) -> None:
        left = self._readers.get(subscription.chat_id, 0) - 1
        if left > 0:
            self._readers[subscription.chat_id] = left
        else:
            self._readers.pop(subscription.chat_id, None)

    async def _place(self, subscription: LinkSubscription, *, avoid: Address | None = None) -> None:
        """Add a subscription to the first available link in its order of preference.

        Raises:
            UpstreamProblem: None is available.
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
        """Return the processes in the order of preference of a chat or user.

        Unavailable and draining ones come last, and after them the one to avoid.
        """
        order = ranked(key, self._channels.addresses)
        # Sorting is stable: among equal ones the order of preference is kept.
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
            # The failure of one stream must not end the others.
            _log.exception("a stream to a chatd failed")
        finally:
            if self._links.get(address) is link:
                del self._links[address]
        for subscription in link.left():
            self._move(subscription, address)

    def _move(self, subscription: LinkSubscription, address: Address) -> None:
        """Move a subscription to another process."""
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
            # Its client would get no more events; it has to reconnect.
            subscription.end(Ending.GOING_AWAY)
            raise
