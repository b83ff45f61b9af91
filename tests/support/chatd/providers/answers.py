"""Asking models in tests: all that one answers, or one event after the other."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from chatd.models.domain.language_model import (
    LanguageModel,
    ModelEvent,
    ModelRequest,
    OnEvent,
    RequestSent,
)
from parley.tasks import owned_tasks

Ask = Callable[[OnEvent], Coroutine[Any, Any, None]]


def answered(on_event: OnEvent) -> OnEvent:
    """Return what takes only that which a model answers, not that it was asked."""

    def took(event: ModelEvent) -> None:
        if not isinstance(event, RequestSent):
            on_event(event)

    return took


async def events_of(model: LanguageModel, request: ModelRequest) -> list[ModelEvent]:
    """Return all that a model answers."""
    events: list[ModelEvent] = []
    async with asyncio.timeout(5):
        await model.answer(request, answered(events.append))
    return events


@asynccontextmanager
async def answering(ask: Ask) -> AsyncIterator[Callable[[], Awaitable[ModelEvent]]]:
    """Ask beside the test and give what waits for the next event; leaving gives up on the rest."""
    events: asyncio.Queue[ModelEvent] = asyncio.Queue()
    async with owned_tasks() as start, asyncio.timeout(5):
        start(ask(answered(events.put_nowait)))
        yield events.get
