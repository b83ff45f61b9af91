"""Metrics of the context of turns: how large prompts are, and how much of the window they fill.

They are taken from the bills of the calls, which have what the provider counted, or an estimate.
"""

from typing import Final

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import Bill
from chatd.turns.engine.metering import CallObserver, MeteredCall
from parley.telemetry import Histograms

PROMPT_TOKENS: Final = "chatd_prompt_tokens"
CONTEXT_USE: Final = "chatd_context_use_ratio"
LABELS: Final = ("provider", "model", "purpose")
TOKENS: Final = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1e6)
RATIOS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class MeasuredCalls:
    """Forwards the calls of turns, and measures the prompts of those that were charged.

    Attributes:
        tokens: Tokens of prompts, those from the provider's cache included.
        ratios: The part of the window that they fill, where the window is known.
    """

    def __init__(self, calls: CallObserver) -> None:
        self._calls = calls
        self.tokens = Histograms(
            PROMPT_TOKENS, "Tokens of the prompts of model calls of turns.", LABELS, TOKENS
        )
        self.ratios = Histograms(
            CONTEXT_USE, "The part of the context window that these prompts fill.", LABELS, RATIOS
        )

    def opened(self, call: MeteredCall, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Forward a call that begins."""
        self._calls.opened(call, chat_id, owner_id)

    def closed(self, call: MeteredCall) -> None:
        """Measure a call that was charged, and forward its end."""
        if call.charged is not None:
            self._measure(call.charged)
        self._calls.closed(call)

    @property
    def metrics(self) -> tuple[Histograms, ...]:
        """The metrics."""
        return self.tokens, self.ratios

    def _measure(self, bill: Bill) -> None:
        use = bill.use
        labels = (use.provider, use.model_name, bill.purpose.value)
        tokens = use.input_tokens + use.cache_read_tokens + use.cache_write_tokens
        self.tokens.of(*labels).record(tokens)
        if use.context_limit_tokens:
            self.ratios.of(*labels).record(tokens / use.context_limit_tokens)
