"""A consumer of hooks in a test of faults, and the ids of the events that it got."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.faults.lab import FaultLab
from support.faults.trials import Fault
from support.net.model_server import ModelServer, model_server, whole

TIMEOUT_MS = 5000
#: A turn with all events of tools, which leaves nothing behind.
PROBE = "run: true"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer that gives every event the same answer."""

    server: ModelServer

    def ids(self, chat_id: str, event: str) -> list[str]:
        """Return the ids of the deliveries of an event of a chat, in order."""
        bodies = [json.loads(each.body) for each in self.server.asked]
        return [
            body["dispatch_id"]
            for body in bodies
            if (body["chat_id"], body["type"]) == (chat_id, event)
        ]

    def require_one_event(self, fault: Fault, chat_id: str, event: str) -> None:
        """Note a problem unless all deliveries of an event to a chat have one id."""
        ids = self.ids(chat_id, event)
        fault.row.counts[f"{event}_deliveries"] += len(ids)
        if len(set(ids)) != 1:
            fault.row.problems.append(f"{chat_id}: {event} was delivered with the ids {ids}")


@asynccontextmanager
async def consuming(lab: FaultLab, answer: object, *events: str) -> AsyncIterator[Consumer]:
    """Give a consumer that every process knows as the hook of some events, until the end."""
    async with model_server(whole(json.dumps(answer).encode())) as server:
        body = {"url": server.url, "events": events, "timeout_ms": TIMEOUT_MS}
        made = await _asked(lab, "POST", "/hooks", {"name": lab.unique()[:60], **body})
        consumer = Consumer(server)
        try:
            for address in lab.addresses:
                await _until_asked_by(lab, address, consumer)
            yield consumer
        finally:
            await _asked(lab, "DELETE", f"/hooks/{made['hook']['id']}")


async def _until_asked_by(lab: FaultLab, address: str, consumer: Consumer) -> None:
    client = await lab.client(address)

    async def is_asked() -> bool:
        before = len(consumer.server.asked)
        await client.ask(PROBE)
        return len(consumer.server.asked) > before

    await lab.until(is_asked, f"an event from {address}")


async def _asked(lab: FaultLab, method: str, path: str, body: object = None) -> Any:
    status, _, document = await lab.http(method, path, body, lab.unique())
    assert 200 <= status < 300, document
    return document
