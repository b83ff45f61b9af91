"""Ports of hooks."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from chatd.hooks.domain.hooks import Hook, HookEvent


class HookOutcome(StrEnum):
    """How a delivery ended."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    REWRITE = "rewrite"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event as it was delivered to one hook.

    Attributes:
        chat_id: The chat; empty for a test.
        http_status: The status of the answer; 0 without one.
        problem: Why it failed; empty if it did not.
        attempts: How often it was delivered, also by earlier owners of the chat.
        notice: The notice for people in the answer; empty for none.
    """

    hook_id: str
    dispatch_id: str
    chat_id: str
    event: HookEvent
    tool_name: str
    outcome: HookOutcome
    http_status: int
    problem: str
    duration_ms: int
    attempts: int = 1
    created_at: datetime | None = None
    notice: str = ""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a consumer answered."""

    status: int
    content: bytes = b""


class DeliveryFailed(Exception):
    """A consumer did not answer."""


class HookSender(Protocol):
    """Sends signed requests to consumers."""

    async def send(self, hook: Hook, dispatch_id: str, body: bytes) -> HookAnswer:
        """Send an event, and return the answer.

        Raises:
            DeliveryFailed: There is none in time.
            DatabaseUnavailable: What it needs cannot be read now.
        """
        ...


class DeliveryLog(Protocol):
    """The log of deliveries."""

    async def add(self, delivery: Delivery) -> None:
        """Add a delivery, or count one more attempt of it."""
        ...

    async def deliveries(self, hook_id: str, length: int) -> tuple[Delivery, ...]:
        """Return the newest deliveries of a hook."""
        ...


class StoredHooks(Protocol):
    """The store of hooks."""

    async def all(self) -> tuple[Hook, ...]:
        """Return the hooks, the oldest first."""
        ...
