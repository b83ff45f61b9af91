"""Following a chat over HTTP."""

import asyncio
import random  # noqa: TID251 (only the type; chance is an argument)
from dataclasses import replace

from starlette.requests import Request

from gateway.authentication import SignedIn
from gateway.bodies import read_query, whole_number
from gateway.chat_events import ChatEvents
from gateway.event_stream import EventStream, StreamLimits
from gateway.inputs import INTEGER_MAX
from gateway.paths import chat_id_of
from gateway.sign_in_watch import SignInWatch
from parley.clock import Clock

CURSOR_CHARACTERS_MAX = 512
# Streams end at different times, so that a crowd does not come back at once.
LIFETIME_SPREAD = 0.1


class EventRoutes:
    """The routes whose answers go on."""

    def __init__(
        self,
        events: ChatEvents,
        sign_ins: SignInWatch,
        *,
        clock: Clock,
        chance: random.Random,
        draining: asyncio.Event,
        limits: StreamLimits,
    ) -> None:
        self._events = events
        self._sign_ins = sign_ins
        self._clock = clock
        self._chance = chance
        self._draining = draining
        self._limits = limits

    async def events(self, request: Request, visitor: SignedIn) -> EventStream:
        """Follow what happens in a chat, from where the client left off."""
        chat_id = chat_id_of(request)
        query = read_query(request, "cursor", "after_id")
        after_id = whole_number(query, "after_id", least=0, most=INTEGER_MAX) or 0
        subscription = await self._events.open(
            visitor.user, chat_id, cursor=_cursor(request, query.get("cursor")), after_id=after_id
        )
        spread = 1 + LIFETIME_SPREAD * (2 * self._chance.random() - 1)
        return EventStream(
            subscription,
            chat_id=chat_id,
            sign_in=self._sign_ins.watching(visitor),
            clock=self._clock,
            draining=self._draining,
            limits=replace(self._limits, lifetime_s=self._limits.lifetime_s * spread),
        )


def _cursor(request: Request, asked: str | None) -> str:
    """Return where to go on; what cannot be a cursor counts as none."""
    cursor = request.headers.get("last-event-id") or asked or ""
    is_usable = cursor.isascii() and cursor.isprintable() and len(cursor) <= CURSOR_CHARACTERS_MAX
    return cursor if is_usable else ""
