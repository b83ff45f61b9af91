"""Ledger entries of model calls: one for each call, whatever its outcome."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.models.domain.model_use import ModelUse
from chatd.primitives.domain.ids import ChatId, MessageId


class CallPurpose(StrEnum):
    """The purpose of a model call."""

    TURN = "turn"
    COMPACTION = "compaction"
    TITLE = "title"
    LABEL = "label"
    SUMMARY = "summary"
    ADVISOR = "advisor"


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
