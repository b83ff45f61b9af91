"""The record of everything that left a workspace or was kept from leaving."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Protocol

from opentelemetry.metrics import Meter

from toolrunner.primitives.domain import WorkspaceId

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ProxyAccessRecord:
    """One request that came to the proxy.

    Attributes:
        workspace_id: Whose.
        form: What was asked for: tunnel, plain or secured; empty if unreadable.
        place: Where to, if that could be read.
        request: Method and path, without a query, which may hold secrets of its own.
        outcome: `passed`, or why not.
        problem: The same in words.
        secret_name: The secret that was added, if any.
        address: The address that was connected to.
        sent_bytes: How much went out.
        received_bytes: How much came in.
        duration_s: How long it took.
    """

    workspace_id: WorkspaceId
    form: str = ""
    place: str = ""
    request: str = ""
    outcome: str = "passed"
    problem: str = ""
    secret_name: str = ""
    address: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    duration_s: float = 0.0


class AccessLog(Protocol):
    """Keeps the record."""

    def note(self, passage: ProxyAccessRecord) -> None:
        """Take down a request that is over."""
        ...


class LoggedAccess:
    """Writes each request into the log and counts it."""

    def __init__(self, meter: Meter) -> None:
        self._requests = meter.create_counter(
            "parley.egress.requests", description="Requests of workspaces, by what became of them."
        )
        self._bytes = meter.create_counter(
            "parley.egress.io", unit="By", description="Bytes that workspaces sent and received."
        )

    def note(self, passage: ProxyAccessRecord) -> None:
        """Log and count."""
        logger.info(
            "egress of workspace %s: %s %s to %s: %s%s%s (%s, %d bytes out, %d in, %.3f s)",
            passage.workspace_id,
            passage.form or "unreadable",
            passage.request,
            passage.place or "nowhere",
            passage.outcome,
            f" with the secret {passage.secret_name}" if passage.secret_name else "",
            f": {passage.problem}" if passage.problem else "",
            passage.address or "not connected",
            passage.sent_bytes,
            passage.received_bytes,
            passage.duration_s,
        )
        has_secret = bool(passage.secret_name)
        self._requests.add(1, {"outcome": passage.outcome, "secret": has_secret})
        self._bytes.add(passage.sent_bytes, {"direction": "sent"})
        self._bytes.add(passage.received_bytes, {"direction": "received"})


@dataclass(slots=True)
class InMemoryAccessLog:
    """Keeps the record in memory, for tests.

    Attributes:
        passages: What was noted.
        changed: Set with each note.
    """

    access_records: list[ProxyAccessRecord] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, passage: ProxyAccessRecord) -> None:
        """Keep it."""
        self.access_records.append(passage)
        self.changed.set()
