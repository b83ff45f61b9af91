"""A model as it is configured for a turn."""

from dataclasses import dataclass

from chatd.models.domain.price import Price

THRESHOLD_PERCENT = 70
THRESHOLD_NEVER_PERCENT = 100


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model as it is configured; a window of 0 is not known."""

    id: str
    context_limit_tokens: int = 0
    price: Price | None = None
    output_tokens_max: int | None = None
    reasoning_effort: str = ""
    provider: str = ""  # As the ledger names it.
    provider_id: str = ""
    name: str = ""  # As the provider names it.
