"""Value types of workers and the chats they own, and the ports of their store."""

from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.chat import ChatState, Claimed, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, WorkerId

SUSPECT_TAKEOVERS = 2
PARKING_TAKEOVERS = 3

CRASH_LOOP = TurnError(
    "The turn was stopped because every process that ran it died.",
    ErrorKind.CRASH_LOOP,
    detail=f"{PARKING_TAKEOVERS} owners died without progress; send a message to try again",
)


@dataclass(frozen=True, slots=True)
class NamedChat:
    """A chat whose row names a worker as its owner, as returned by a lease renewal."""

    chat_id: ChatId
    owner_epoch: int
    snapshot_version: int
    status: Status


@dataclass(frozen=True, slots=True)
class DueAction:
    """A chat with an action that nobody answered in time."""

    chat_id: ChatId
    owner: Owner
    action_id: ExecutionId | None


@dataclass(frozen=True, slots=True)
class Replica:
    """A process with a live lease, and its address."""

    worker_id: WorkerId
    address: str
    is_draining: bool


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Limits of one sweep.

    The limit per user is soft: two workers that sweep at the same time do not see each other's
    claims.

    Attributes:
        may_take_orphans: Whether to take chats of other workers whose lease expired, or only chats
            without an owner.
    """

    chats_max: int
    running_per_user_max: int
    may_take_suspect: bool
    may_take_orphans: bool = True


class Leases(Protocol):
    """The lease row of a worker; only the database's clock is used."""

    async def register(self, worker_id: WorkerId, address: str, lease_s: float) -> None:
        """Insert the row of a worker that starts."""
        ...

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend the lease; return the chats that the worker owns, None if its row is gone."""
        ...

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Mark the worker as draining, so that it claims no more chats."""
        ...

    async def expire(self, worker_id: WorkerId) -> None:
        """End the lease permanently."""
        ...


class Claims(Protocol):
    """Claims of chats that wait for an owner or whose owner's lease expired."""

    async def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim chats without a live owner: interrupting ones first, then the oldest change."""
        ...

    async def park(self, worker_id: WorkerId, chats_max: int) -> tuple[ChatState, ...]:
        """End the turns that three takeovers in a row did not complete."""
        ...

    async def reclaim(
        self, worker_id: WorkerId, chat_id: ChatId, owner_epoch: int
    ) -> Claimed | None:
        """Claim again a chat that the worker already owns; None if that has changed."""
        ...

    async def due_actions(self, chats_max: int) -> tuple[DueAction, ...]:
        """Return chats whose client missed its deadline, the longest overdue first."""
        ...

    async def owned(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """Return the chats that the worker owns."""
        ...

    async def states(self, chat_ids: tuple[ChatId, ...]) -> tuple[ChatState, ...]:
        """Return the current states of those chats that exist."""
        ...


def is_ownerless(state: ChatState) -> bool:
    """Return whether the chat should run but has no owner, so that a sweep can claim it."""
    return state.worker_id is None and state.status in (Status.RUNNING, Status.INTERRUPTING)


def is_suspect(state: ChatState) -> bool:
    """Return whether so many owners died during this turn that it may be the cause."""
    return state.takeovers >= SUSPECT_TAKEOVERS
