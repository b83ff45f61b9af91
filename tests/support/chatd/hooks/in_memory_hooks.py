"""Hooks, their log and a consumer in memory."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from chatd.hooks.domain.hooks import Hook, HookEvent
from chatd.hooks.domain.ports import Delivery, DeliveryFailed, HookAnswer
from chatd.hooks.engine.cached_hooks import CachedHooks
from chatd.hooks.engine.chat_hooks import ChatHooks
from chatd.hooks.engine.dispatch import HookDispatcher
from parley.clock import FakeClock
from parley.telemetry.redaction import Redactor

#: Returns the answer to an event: JSON, a status, or None for no answer.
Answer = Callable[[dict[str, Any]], object]
HOOK_ID = "00000000-0000-4000-8000-0000000000f0"


def hook(*events: HookEvent, **more: Any) -> Hook:
    """Return a hook for events; for all if none are named."""
    given: dict[str, Any] = {
        "id": HOOK_ID,
        "name": "policy",
        "url": "https://hooks.example.com/",
        **more,
    }
    return Hook(events=frozenset(events or HookEvent), **given)


@dataclass(slots=True)
class InMemoryHooks:
    """Hooks in memory, with how often they were read."""

    kept: list[Hook] = field(default_factory=list)
    reads: int = 0

    async def all(self) -> tuple[Hook, ...]:
        self.reads += 1
        return tuple(self.kept)


@dataclass(slots=True)
class InMemoryDeliveries:
    """The log of deliveries in memory."""

    length_max: int = 200
    kept: dict[tuple[str, str], Delivery] = field(default_factory=dict)

    async def add(self, delivery: Delivery) -> None:
        key = (delivery.hook_id, delivery.dispatch_id)
        before = self.kept.pop(key, None)
        attempts = 1 if before is None else before.attempts + 1
        self.kept[key] = replace(delivery, attempts=attempts)
        of_hook = [each for each in self.kept if each[0] == delivery.hook_id]
        for old in of_hook[: -self.length_max]:
            del self.kept[old]

    async def deliveries(self, hook_id: str, length: int) -> tuple[Delivery, ...]:
        found = [each for each in reversed(self.kept.values()) if each.hook_id == hook_id]
        return tuple(found[:length])


@dataclass(slots=True)
class ScriptedConsumer:
    """A consumer that answers as it is scripted, and notes what it gets."""

    answer: Answer = lambda payload: {}
    got: list[dict[str, Any]] = field(default_factory=list)
    held: asyncio.Event | None = None
    meanwhile: Callable[[], Awaitable[None]] | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, hook: Hook, dispatch_id: str, body: bytes) -> HookAnswer:
        payload = json.loads(body)
        assert payload["dispatch_id"] == dispatch_id
        self.got.append(payload)
        self.arrived.set()
        if self.held is not None:
            await self.held.wait()
        if self.meanwhile is not None:
            await self.meanwhile()
        match self.answer(payload):
            case None:
                raise DeliveryFailed("it is down")
            case int(status):
                return HookAnswer(status)
            case answer:
                return HookAnswer(200, json.dumps(answer).encode())

    def seen(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the types and data of the events."""
        return [(each["type"], each["data"]) for each in self.got]


@dataclass(slots=True)
class HookStage:
    """Hooks of chats over a scripted consumer."""

    stored: InMemoryHooks
    consumer: ScriptedConsumer
    log: InMemoryDeliveries
    cached: CachedHooks
    dispatcher: HookDispatcher
    clock: FakeClock

    @property
    def chats(self) -> ChatHooks:
        return ChatHooks(self.dispatcher)


def hook_stage(answer: Answer, *hooks: Hook) -> HookStage:
    """Return hooks whose consumer answers like this."""
    stored, consumer = InMemoryHooks(list(hooks)), ScriptedConsumer(answer)
    log, clock = InMemoryDeliveries(), FakeClock()
    cached = CachedHooks(stored, clock)
    dispatcher = HookDispatcher(
        cached, sender=consumer, log=log, clock=clock, clean=Redactor().clean
    )
    return HookStage(stored, consumer, log, cached, dispatcher, clock)
