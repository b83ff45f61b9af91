"""Value types of workers and the chats they own, and the ports of their store."""

from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.chat import ChatState, Claimed, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId, WorkerId

# A turn with so many deaths since its last progress is run in quarantine only, alone in a process.
SUSPECT_TAKEOVERS = 2
# So many mean that it killed two processes in which nothing else ran.
PARKING_TAKEOVERS = SUSPECT_TAKEOVERS + 2

CRASH_LOOP = TurnError(
    "The turn was stopped because every process that ran it died.",
    ErrorKind.CRASH_LOOP,
    detail=f"{PARKING_TAKEOVERS} owners died without progress, two of which ran nothing else; "
    "send a message to try again",
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
    is_quarantine: bool = False  # Only other processes call it, for the live text of its chats.


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Limits of one sweep.

    The limit per user is soft: two workers that sweep at the same time do not see each other's
    claims.

    Attributes:
        is_quarantine: Whether to take suspects only, or all chats that are no suspects.
        may_take_orphans: Whether to take chats of other workers whose lease expired, or only chats
            without an owner and chats of workers that have ended.
    """

    chats_max: int
    running_per_user_max: int
    is_quarantine: bool = False
    may_take_orphans: bool = True


@dataclass(frozen=True, slots=True)
class UserLoad:
    """How many processes run chats, and the users who run as many as they may."""

    replicas: int = 1
    at_limit: frozenset[OwnerId] = frozenset()


class WorkerEnded(Exception):
    """The row of this worker was marked as ended: its chats belong to others, and it must exit."""

    def __init__(self, worker_id: WorkerId) -> None:
        super().__init__(f"worker {worker_id} was declared dead by a proof of its death")


class Leases(Protocol):
    """The lease row of a worker; only the database's clock is used."""

    async def register(
        self, worker_id: WorkerId, address: str, lease_s: float, *, is_quarantine: bool = False
    ) -> None:
        """Insert the row of a worker that starts.

        Raises:
            WorkerEnded: The id was used by a worker that has ended.
        """
        ...

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend the lease; return the chats that the worker owns.

        None means that there is no row of a worker that has not ended.
        """
        ...

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Mark the worker as draining, so that it claims no more chats."""
        ...

    async def end(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """End a worker permanently, itself or with a proof of its death; return its former chats.

        Those are released under a new epoch and count one more death, or are parked by it. A worker
        that is not known or has ended already has none.
        """
        ...


class Claims(Protocol):
    """Claims of chats that wait for an owner or whose owner's lease expired."""

    async def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim chats without a live owner: interrupting ones first, then the oldest change."""
        ...

    async def user_load(self, running_per_user_max: int) -> UserLoad:
        """Return the users whose running chats have reached a limit, in all processes together."""
        ...

    async def park(self, worker_id: WorkerId, chats_max: int) -> tuple[ChatState, ...]:
        """End the turns that killed two owners in quarantine."""
        ...

    async def needs_quarantine(self) -> bool:
        """Return whether a suspect waits for an owner and no live worker takes suspects."""
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
