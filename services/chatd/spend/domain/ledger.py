"""Ledger entries of model calls: one for each call, whatever its outcome."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId, Fence, MessageId, OwnerId


class CallPurpose(StrEnum):
    """The purpose of a model call."""

    TURN = "turn"
    COMPACTION = "compaction"
    TITLE = "title"
    LABEL = "label"
    SUMMARY = "summary"
    ADVISOR = "advisor"
    JUDGE = "judge"


class CallOutcome(StrEnum):
    """The outcome of a model call."""

    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"  # The answer was no longer needed.
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Bill:
    """The usage, purpose and outcome of one call."""

    purpose: CallPurpose
    outcome: CallOutcome
    use: ModelUse


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A bill with its key: chat, episode and purpose are unique.

    A side call has no episode of its own; it uses the history version that it was made from and
    counts its attempts.

    Attributes:
        message_id: The answer that the call was made for, None when none was stored.
    """

    chat_id: ChatId
    history_version: int
    generation_attempt: int
    bill: Bill
    message_id: MessageId | None = None


class Ledger(Protocol):
    """The ledger of model calls."""

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Enter a call, unless it is already there."""
        ...


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call, with the estimate that is charged if its process dies."""

    entry: LedgerEntry
    owner_id: OwnerId


class StoredOpenCalls(Protocol):
    """Stores the calls in progress."""

    async def write(self, changed: tuple[OpenCall, ...], ended: tuple[OpenCall, ...]) -> None:
        """Store the current state of this process's calls, and remove those that ended."""
        ...

    async def charge_abandoned(self, calls_max: int) -> int:
        """Enter calls of dead processes into the ledger; return their number."""
        ...


class InheritedCalls(Protocol):
    """The calls that a dead process left."""

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return the call of an episode, None if there is none."""
        ...
