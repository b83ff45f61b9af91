"""A model call until it is entered into the ledger."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from chatd.models.domain.estimates import estimated_input_tokens
from chatd.models.domain.language_model import ModelRequest
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, Fence, OwnerId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry, OpenCall
from chatd.spend.domain.metering import doubt
from chatd.turns.engine.answer import Answer

logger = logging.getLogger(__name__)

# Alive time that no answer is charged with is added to the next one.
CHARGED = (CallOutcome.DONE, CallOutcome.INTERRUPTED)
# We closed the stream, not the provider: it charges for the prompt, whatever it had answered.
STOPPED = (CallOutcome.ABORTED, CallOutcome.INTERRUPTED)


class MeteredCall:
    """One call, measured once: later reads return the first bill.

    The bill and the stored answer must agree, however often a commit is tried.
    """

    def __init__(
        self,
        fence: Fence,
        purpose: CallPurpose,
        profile: ModelProfile,
        answer: Answer,
        request: ModelRequest,
        *,
        alive_ms: Callable[[], int],
    ) -> None:
        self.fence = fence
        self._purpose = purpose
        self._profile = profile
        self._answer = answer
        self._request = request
        self._input_tokens: int | None = None
        self._alive_ms = alive_ms
        self._bill: Bill | None = None

    def bill(self, outcome: CallOutcome) -> Bill | None:
        """Return the bill of the call; None when its provider does not charge for it.

        That is so for a call that was never sent, and for one that failed before the model produced
        anything. Usage that the provider did not report is estimated.
        """
        is_owed = outcome is CallOutcome.DONE or self._answer.has_begun
        if outcome in STOPPED and self._answer.is_sent:
            is_owed = True
        if self._bill is None and is_owed:
            alive_ms = self._alive_ms() if outcome in CHARGED else 0
            use = self._answer.use(self._profile, self._estimated_input_tokens, alive_ms)
            self._bill = Bill(self._purpose, outcome, use)
            if (problem := doubt(self._profile, self._answer.usage)) is not None:
                logger.warning("%s; it is stored as an estimate or as not known", problem)
        return self._bill

    @property
    def charged(self) -> Bill | None:
        """The bill; None before it is fixed, and if nothing is charged."""
        return self._bill

    def entry(self, chat_id: ChatId, outcome: CallOutcome) -> LedgerEntry | None:
        """Return the bill as a ledger entry, for a call that no commit of the chat carries."""
        bill, fence = self.bill(outcome), self.fence
        if bill is None:
            return None
        return LedgerEntry(chat_id, fence.history_version, fence.generation_attempt, bill)

    @property
    def output_tokens(self) -> int:
        """An estimate of the tokens received so far."""
        return self._answer.output_tokens

    def entry_so_far(self, chat_id: ChatId) -> LedgerEntry | None:
        """Return the ledger entry if the process ended now; the bill is not fixed by it."""
        if not self._answer.is_sent and not self._answer.has_begun:
            return None
        fence = self.fence
        use = self._answer.use(self._profile, self._estimated_input_tokens, 0)
        bill = Bill(self._purpose, CallOutcome.ABORTED, use)
        return LedgerEntry(chat_id, fence.history_version, fence.generation_attempt, bill)

    def _estimated_input_tokens(self) -> int:
        if self._input_tokens is None:
            self._input_tokens = estimated_input_tokens(self._request)
        return self._input_tokens

    def use(self, outcome: CallOutcome) -> ModelUse | None:
        """Return the usage stored with the answer."""
        bill = self.bill(outcome)
        return None if bill is None else bill.use


class CallObserver(Protocol):
    """Is called with every model call when it begins and when its bill is settled."""

    def opened(self, call: MeteredCall, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Handle the start of a call."""
        ...

    def closed(self, call: MeteredCall) -> None:
        """Handle that a call was billed, or that no charge is due for it."""
        ...


def use_of_answer(inherited: OpenCall | None) -> ModelUse | None:
    """Return the usage stored with the answer of a dead owner; a summary has no message."""
    if inherited is None or inherited.entry.bill.purpose is not CallPurpose.TURN:
        return None
    return inherited.entry.bill.use


def inherited_bill(inherited: OpenCall | None) -> Bill | None:
    """Return the bill of a call that a dead owner left, for the interruption that ends it."""
    if inherited is None:
        return None
    return replace(inherited.entry.bill, outcome=CallOutcome.INTERRUPTED)
