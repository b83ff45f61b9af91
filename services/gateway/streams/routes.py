"""SSE routes: events of a chat, and of a user's list of chats."""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from starlette.requests import Request

from gateway.api.events import CHAT_EVENTS, FEED_EVENTS
from gateway.api.parameters import path_id
from gateway.http.authentication import Principal, check_scope
from gateway.http.request_body import event_types, int_parameter, read_query
from gateway.http.sign_in_watch import SignInWatch
from gateway.streams.chatd_client import WAIT_OUTPUT
from gateway.streams.event_source import ChatEventSource
from gateway.streams.event_stream import EventStream, StreamDependencies, StreamLimits
from gateway.streams.followed_processes import (
    PARAMETER,
    FollowedProcesses,
    FollowingStream,
    followed_processes,
)
from gateway.streams.open_streams import OpenStreams
from parley.clock import Clock
from parley.contract.rules import JSON_INTEGER_MAX
from parley.identity import rule_of

CURSOR_CHARACTERS_MAX = 512
# Streams end at different times, so that clients do not reconnect at once.
LIFETIME_SPREAD = 0.1


class EventRoutes:
    """The SSE routes."""

    def __init__(
        self,
        events: ChatEventSource,
        streams: OpenStreams,
        sign_ins: SignInWatch,
        processes: FollowedProcesses,
        *,
        clock: Clock,
        rng: random.Random,
        limits: StreamLimits,
    ) -> None:
        self._events = events
        self._streams = streams
        self._sign_ins = sign_ins
        self._processes = processes
        self._clock = clock
        self._rng = rng
        self._limits = limits

    async def chat(self, request: Request, principal: Principal) -> EventStream | FollowingStream:
        """Stream the events of a chat, after the client's cursor, and the output of processes."""
        chat_id = path_id(request, "chat_id")
        query = read_query(request, "cursor", "after_id", "types", PARAMETER)
        followed = followed_processes(query)
        if followed:
            check_scope(principal, rule_of(WAIT_OUTPUT))
        after_id = int_parameter(query, "after_id", least=0, most=JSON_INTEGER_MAX) or 0
        stream = self.stream(principal, {"chat_id": chat_id}, event_types(query, CHAT_EVENTS))
        subscription = await self._events.open(
            principal.user,
            chat_id,
            stream,
            cursor=_cursor(request, query.get("cursor")),
            after_id=after_id,
        )
        stream.follow(subscription)
        if not followed:
            return stream
        return self._processes.stream(stream, principal.user, chat_id, followed)

    async def feed(self, request: Request, principal: Principal) -> EventStream:
        """Stream the changes of a user's list of chats, after the client's cursor."""
        query = read_query(request, "cursor", "types")
        stream = self.stream(principal, {}, event_types(query, FEED_EVENTS))
        cursor = _cursor(request, query.get("cursor"))
        stream.follow(await self._events.open_feed(principal.user, stream, cursor=cursor))
        return stream

    def stream(
        self, principal: Principal, about: Mapping[str, str], kinds: frozenset[str]
    ) -> EventStream:
        """Return a stream for one client without a source yet, for events of some types."""
        spread = 1 + LIFETIME_SPREAD * (2 * self._rng.random() - 1)
        limits = replace(self._limits, lifetime_s=self._limits.lifetime_s * spread)
        around = StreamDependencies(
            self._streams.holding,
            partial(self._sign_ins.watching, principal),
            self._clock,
            self._streams.overflowed,
        )
        return EventStream(around, limits, about=about, kinds=kinds)


def _cursor(request: Request, asked: str | None) -> str:
    """Return the cursor; the Last-Event-ID header takes precedence over the query."""
    cursor = request.headers.get("last-event-id") or asked or ""
    is_usable = cursor.isascii() and cursor.isprintable() and len(cursor) <= CURSOR_CHARACTERS_MAX
    return cursor if is_usable else "-"
