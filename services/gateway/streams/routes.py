"""Streams over HTTP: what happens in a chat, and in a user's list of chats."""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from starlette.requests import Request

from gateway.api.convert.chats import CHAT_EVENTS, FEED_EVENTS
from gateway.api.inputs.chats import INTEGER_MAX
from gateway.api.path_parameters import chat_id_of
from gateway.http.authentication import SignedIn
from gateway.http.request_body import event_types, read_query, whole_number
from gateway.http.sign_in_watch import SignInWatch
from gateway.streams.event_source import ChatEvents
from gateway.streams.event_stream import EventStream, StreamLimits, Surroundings
from gateway.streams.open_streams import OpenStreams
from parley.clock import Clock

CURSOR_CHARACTERS_MAX = 512
# Streams end at different times, so that a crowd does not come back at once.
LIFETIME_SPREAD = 0.1


class EventRoutes:
    """The routes that stream."""

    def __init__(
        self,
        events: ChatEvents,
        streams: OpenStreams,
        sign_ins: SignInWatch,
        *,
        clock: Clock,
        chance: random.Random,
        limits: StreamLimits,
    ) -> None:
        self._events = events
        self._streams = streams
        self._sign_ins = sign_ins
        self._clock = clock
        self._chance = chance
        self._limits = limits

    async def chat(self, request: Request, visitor: SignedIn) -> EventStream:
        """Follow what happens in a chat, from where the client left off."""
        chat_id = chat_id_of(request)
        query = read_query(request, "cursor", "after_id", "types")
        after_id = whole_number(query, "after_id", least=0, most=INTEGER_MAX) or 0
        stream = self.stream(visitor, {"chat_id": chat_id}, event_types(query, CHAT_EVENTS))
        subscription = await self._events.open(
            visitor.user,
            chat_id,
            stream,
            cursor=_cursor(request, query.get("cursor")),
            after_id=after_id,
        )
        stream.follow(subscription)
        return stream

    async def feed(self, request: Request, visitor: SignedIn) -> EventStream:
        """Follow a user's list of chats, from where the client left off."""
        query = read_query(request, "cursor", "types")
        stream = self.stream(visitor, {}, event_types(query, FEED_EVENTS))
        cursor = _cursor(request, query.get("cursor"))
        stream.follow(await self._events.open_feed(visitor.user, stream, cursor=cursor))
        return stream

    def stream(
        self, visitor: SignedIn, about: Mapping[str, str], kinds: frozenset[str]
    ) -> EventStream:
        """Return the stream of one client, which nobody feeds yet, for events of some types."""
        spread = 1 + LIFETIME_SPREAD * (2 * self._chance.random() - 1)
        limits = replace(self._limits, lifetime_s=self._limits.lifetime_s * spread)
        around = Surroundings(
            self._streams.holding,
            partial(self._sign_ins.watching, visitor),
            self._clock,
            self._streams.overflowed,
        )
        return EventStream(around, limits, about=about, kinds=kinds)


def _cursor(request: Request, asked: str | None) -> str:
    """Return where to go on; a header counts more than the address."""
    cursor = request.headers.get("last-event-id") or asked or ""
    is_usable = cursor.isascii() and cursor.isprintable() and len(cursor) <= CURSOR_CHARACTERS_MAX
    return cursor if is_usable else "-"
