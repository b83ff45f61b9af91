"""Calls of models as the ledger keeps them: one entry each, whatever became of them."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.models.domain.model_use import ModelUse
from chatd.primitives.domain.ids import ChatId, MessageId


class CallPurpose(StrEnum):
    """What a model was called for."""

    TURN = "turn"
    COMPACTION = "compaction"
    TITLE = "title"
    LABEL = "label"
    SUMMARY = "summary"
    ADVISOR = "advisor"


class CallOutcome(StrEnum):
    """What became of a call."""

    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"  # Nobody wanted the answer any more.
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Bill:
    """What one call used, for what, and how it ended."""

    purpose: CallPurpose
    outcome: CallOutcome
    use: ModelUse


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A bill with its place: no two calls share chat, episode and purpose.

    A small generation has no episode of its own; it takes the history that it was made from and
    counts its attempts.

    Attributes:
        message_id: The answer that the call was made for, None when none was stored.
    """

    chat_id: ChatId
    history_version: int
    generation_attempt: int
    bill: Bill
    message_id: MessageId | None = None
