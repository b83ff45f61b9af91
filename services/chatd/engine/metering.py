"""A call of a model while nobody has entered it into the ledger yet."""

import logging
from collections.abc import Callable

from chatd.domain.chat import ChatId, ModelUse
from chatd.domain.commands import Fence
from chatd.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.domain.metering import doubt
from chatd.domain.turn import ModelProfile
from chatd.engine.answer import Answer

logger = logging.getLogger(__name__)

# Alive time that no answer is charged with goes to the next one.
CHARGED = (CallOutcome.DONE, CallOutcome.INTERRUPTED)


class MeteredCall:
    """One call, measured once: whatever is asked later gets what was answered first.

    The bill and the stored answer must agree, however often a commit is tried.
    """

    def __init__(
        self,
        fence: Fence,
        purpose: CallPurpose,
        profile: ModelProfile,
        answer: Answer,
        *,
        alive_ms: Callable[[], int],
    ) -> None:
        self.fence = fence
        self._purpose = purpose
        self._profile = profile
        self._answer = answer
        self._alive_ms = alive_ms
        self._bill: Bill | None = None

    def bill(self, outcome: CallOutcome) -> Bill | None:
        """Return what the call is billed with; None when the model did nothing."""
        if self._bill is None and (outcome is CallOutcome.DONE or self._answer.has_begun):
            alive_ms = self._alive_ms() if outcome in CHARGED else 0
            use = self._answer.use(self._profile, alive_ms)
            self._bill = Bill(self._purpose, outcome, use)
            if (problem := doubt(self._profile, self._answer.usage)) is not None:
                logger.warning("%s; it is stored as not known", problem)
        return self._bill

    def entry(self, chat_id: ChatId, outcome: CallOutcome) -> LedgerEntry | None:
        """Return the same as the ledger keeps it, for when no commit of the chat carries it."""
        bill, fence = self.bill(outcome), self.fence
        if bill is None:
            return None
        return LedgerEntry(chat_id, fence.history_version, fence.generation_attempt, bill)

    def use(self, outcome: CallOutcome) -> ModelUse | None:
        """Return what is stored with the answer."""
        bill = self.bill(outcome)
        return None if bill is None else bill.use
