"""Workers and the chats they own, as values, and what an engine needs of their store."""

from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.chat import ChatState, Claimed, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId, Owner, WorkerId

SUSPECT_TAKEOVERS = 2
PARKING_TAKEOVERS = 3

CRASH_LOOP = TurnError(
    "The turn was stopped because every process that ran it died.",
    ErrorKind.CRASH_LOOP,
    detail=f"{PARKING_TAKEOVERS} owners died without progress; send a message to try again",
)


@dataclass(frozen=True, slots=True)
class NamedChat:
    """A chat that names a worker as its owner, as a renewal tells it."""

    chat_id: ChatId
    owner_epoch: int
    snapshot_version: int
    status: Status


@dataclass(frozen=True, slots=True)
class DueAction:
    """A chat whose client let the time for its tools pass, and the history that asked for them."""

    chat_id: ChatId
    owner: Owner
    history_version: int


@dataclass(frozen=True, slots=True)
class Replica:
    """A process with a live lease, and where it can be reached."""

    worker_id: WorkerId
    address: str
    is_draining: bool


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """How much one sweep may take.

    The limit per user is soft: two workers that sweep at the same moment do not see each other.

    Attributes:
        may_take_orphans: Whether chats of others whose lease ran out are taken too, or only those
            that name nobody.
    """

    chats_max: int
    running_per_user_max: int
    may_take_suspect: bool
    may_take_orphans: bool = True


class Leases(Protocol):
    """The row that says that a worker lives, judged by the database's clock alone."""

    async def register(self, worker_id: WorkerId, address: str, lease_s: float) -> None:
        """Make the row of a worker that starts."""
        ...

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend the lease; return the chats that name the worker, None if its row is gone."""
        ...

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Let the worker claim nothing any more."""
        ...

    async def expire(self, worker_id: WorkerId) -> None:
        """End the lease now and for ever."""
        ...


class Claims(Protocol):
    """Chats that wait for an owner or lost theirs."""

    async def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim what has no live owner: interrupting chats first, then the oldest change."""
        ...

    async def park(self, worker_id: WorkerId, chats_max: int) -> tuple[ChatState, ...]:
        """End the turns that three takeovers in a row did not carry on."""
        ...

    async def reclaim(
        self, worker_id: WorkerId, chat_id: ChatId, owner_epoch: int
    ) -> Claimed | None:
        """Claim anew what the worker owns already; None if that has changed."""
        ...

    async def due_actions(self, chats_max: int) -> tuple[DueAction, ...]:
        """Return chats whose client is late, the longest overdue first."""
        ...

    async def owned(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """Return the chats that name the worker."""
        ...

    async def states(self, chat_ids: tuple[ChatId, ...]) -> tuple[ChatState, ...]:
        """Return the states of those that exist, read now."""
        ...


def is_ownerless(state: ChatState) -> bool:
    """Return whether the chat should run but has no owner, so that a sweep would help it."""
    return state.worker_id is None and state.status in (Status.RUNNING, Status.INTERRUPTING)


def is_suspect(state: ChatState) -> bool:
    """Return whether owners died on this turn so often that it may be the cause."""
    return state.takeovers >= SUSPECT_TAKEOVERS
