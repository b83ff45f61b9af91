"""Requests of the client of a shared stream: open, renew, confirm, close and call."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from chatd.primitives.domain.errors import ChatError, InvalidRequest
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc.fields import chat_id_of, uuid_of
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.access import Access
from chatd.streams.rpc.connection import Connection, Entry
from chatd.streams.rpc.feeds import Feeds
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.relay_source import RelaySource
from chatd.streams.rpc.replicas import ReplicaWatch
from chatd.streams.rpc.subscription import Close, Subscription
from chatd.streams.rpc.tunnelled_calls import ActiveTunnelledCalls
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.clock import Clock
from parley.identity import Caller, IdentityError, ServiceName
from parley.postgres import DatabaseUnavailable

SUBSCRIBE = "/parley.api.chat.v1.StreamService/Subscribe"
SUBSCRIPTIONS_MAX = 20_000

logger = logging.getLogger(__name__)

# Returns the caller that an authorization names for a method, or raises.
Admit = Callable[[str, str], Caller]


@dataclass(frozen=True, slots=True)
class Streams:
    """Dependencies of the stream handlers.

    Attributes:
        hubs: Chats.
        source: Live parts for processes that relay them.
        access: Permissions.
        admit: Verifies the tokens inside shared streams.
        feeds: Users' chat lists.
        replicas: The registered processes.
        clock: Time.
    """

    hubs: Hubs
    source: RelaySource
    access: Access
    admit: Admit
    feeds: Feeds
    replicas: ReplicaWatch
    clock: Clock


class Refused(Exception):
    """A subscription that cannot be opened, and the close reason for its reader."""

    def __init__(self, why: Close) -> None:
        super().__init__(why.name)
        self.why = why


class StreamRequestHandler:
    """Handles the requests of one stream's client, for the readers whose tokens it presents."""

    def __init__(
        self,
        streams: Streams,
        connection: Connection,
        service: ServiceName,
        calls: ActiveTunnelledCalls,
    ) -> None:
        self._streams = streams
        self._calls = calls
        self._connection = connection
        self._service = service
        self._opening: dict[int, asyncio.Task[None]] = {}

    def handle(self, request: api.ConnectRequest, tasks: asyncio.TaskGroup) -> None:
        """Start handling a request; nothing here blocks."""
        connection = self._connection
        match request.WhichOneof("kind"):
            case "open":
                asked = request.open
                if self._is_free(asked.subscription_id):
                    self._begin(asked.subscription_id, partial(self._chat, asked), tasks)
            case "open_feed":
                feed = request.open_feed
                if self._is_free(feed.subscription_id):
                    self._begin(feed.subscription_id, partial(self._feed, feed), tasks)
            case "renew":
                self._renew(request.renew)
            case "confirm":
                entry = connection.find(request.confirm.subscription_id)
                if entry is not None:
                    entry.subscription.confirm(request.confirm.bytes)
            case "close":
                opening = self._opening.pop(request.close.subscription_id, None)
                if opening is not None:
                    # A cancelled request must not delay those that still wait.
                    opening.cancel()
                connection.remove(request.close.subscription_id)
            case "calls":
                self._calls.begin(request.calls.calls, tasks)
            case "abandon":
                self._calls.abandon(request.abandon.call_id)
            case _:
                # A newer version of the client sends other requests.
                return

    def _is_free(self, subscription_id: int) -> bool:
        """Return whether an id can be used; an id in use keeps its subscription."""
        is_used = subscription_id in self._opening or subscription_id in self._connection
        is_full = len(self._connection) + len(self._opening) >= SUBSCRIPTIONS_MAX
        if is_used or is_full:
            logger.error("a subscription was asked for twice, or there are too many")
        return not is_used and not is_full

    def _begin(
        self, subscription_id: int, enter: Callable[[], Awaitable[Entry]], tasks: asyncio.TaskGroup
    ) -> None:
        opening = tasks.create_task(self._open(subscription_id, enter))
        self._opening[subscription_id] = opening

    async def _open(self, subscription_id: int, enter: Callable[[], Awaitable[Entry]]) -> None:
        try:
            entry = await enter()
        except Refused as refused:
            entry = self._refusal(subscription_id, refused.why)
        except Exception:
            # The stream is shared: its other subscriptions must not fail with this one.
            logger.exception("a subscription could not be opened")
            entry = self._refusal(subscription_id, Close.INTERNAL)
        if self._opening.pop(subscription_id, None) is not None:
            self._connection.add(entry)
        else:
            self._connection.forget(entry)

    def _refusal(self, subscription_id: int, why: Close) -> Entry:
        subscription = Subscription(Position(), self._connection.wake)
        subscription.close(why)
        return Entry(subscription_id, subscription, lambda: None)

    async def _feed(self, request: api.OpenFeed) -> Entry:
        feeds, access = self._streams.feeds, self._streams.access
        try:
            user_id = self._user(request.authorization)
            subscription = await feeds.follow(user_id, request.cursor, self._connection.wake)
        except (ChatError, IdentityError) as error:
            logger.info("a feed was refused: %s", error)
            raise Refused(Close.NOT_FOUND) from error
        except DatabaseUnavailable as error:
            raise Refused(Close.INTERNAL) from error
        access.authorize(subscription)

        def leave() -> None:
            access.leave(subscription)
            feeds.leave(user_id, subscription)

        return Entry(request.subscription_id, subscription, leave, is_feed=True)

    async def _chat(self, request: api.OpenSubscription) -> Entry:
        hubs, access = self._streams.hubs, self._streams.access
        try:
            chat_id = chat_id_of(request.chat_id)
            if request.after_id < 0:
                raise InvalidRequest("after_id", "is less than 0")
            if request.relay:
                return self._relayed(request, chat_id)
            user_id = self._user(request.authorization)
            subscription = await access.open(
                chat_id,
                user_id,
                cursor=request.cursor,
                after_id=request.after_id,
                wake=self._connection.wake,
            )
        except (ChatError, IdentityError) as error:
            logger.info("a subscription was refused: %s", error)
            raise Refused(Close.NOT_FOUND) from error
        except DatabaseUnavailable as error:
            raise Refused(Close.INTERNAL) from error
        access.authorize(subscription)

        def leave() -> None:
            access.leave(subscription)
            hubs.leave(chat_id, subscription)

        return Entry(request.subscription_id, subscription, leave)

    def _relayed(self, request: api.OpenSubscription, chat_id: ChatId) -> Entry:
        """Return a subscription of another chatd process, which needs no user."""
        if self._service is not ServiceName.CHATD:
            raise Refused(Close.NOT_FOUND)
        source = self._streams.source
        position = Position.parse(request.cursor) or Position()
        subscription = source.follow(chat_id, position, self._connection.wake)
        return Entry(
            request.subscription_id, subscription, lambda: source.leave(chat_id, subscription)
        )

    def _renew(self, request: api.RenewSubscription) -> None:
        entry = self._connection.find(request.subscription_id)
        if entry is None:
            return
        try:
            self._user(request.authorization)
        except (ChatError, IdentityError, Refused) as error:
            logger.info("a subscription was not renewed: %s", error)
        else:
            self._streams.access.authorize(entry.subscription)

    def _user(self, authorization: str) -> OwnerId:
        """Return the user that a token names; the token must be issued to the connected service."""
        caller = self._streams.admit(SUBSCRIBE, f"Bearer {authorization}")
        if caller.user is None or caller.service is not self._service:
            raise Refused(Close.NOT_FOUND)
        return OwnerId(uuid_of(caller.user.id, "authorization"))
