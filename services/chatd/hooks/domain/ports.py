"""Ports of hooks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from chatd.hooks.domain.hooks import Hook


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event as it was delivered to one hook.

    Attributes:
        decision: What was decided; empty if the delivery failed.
        status: The HTTP status; 0 without an answer.
        problem: Why it failed; empty if it did not.
        attempts: How often it was delivered, also by earlier owners of the chat.
    """

    hook_id: str
    dispatch_id: str
    chat_id: str
    event: str
    tool_name: str
    decision: str
    status: int
    problem: str
    duration_ms: int
    attempts: int = 1
    created_at: datetime | None = None


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
        """
        ...


class DeliveryLog(Protocol):
    """The log of deliveries."""

    async def add(self, delivery: Delivery) -> None:
        """Add a delivery, or count one more attempt of it."""
        ...


class StoredHooks(Protocol):
    """The store of hooks."""

    async def of_owner(self, owner_id: str) -> tuple[Hook, ...]:
        """Return the hooks of a user, or those for all chats."""
        ...

    async def do_users_have_any(self) -> bool:
        """Return whether any user has hooks."""
        ...
