"""Token prices, and the usage and cost of model calls: computed exactly, then rounded up once."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from chatd.models.domain.language_model import UsageReported

# Larger values are errors: no call uses or costs that much.
TOKENS_MAX = 10**12
COST_MICROS_MAX = 10**13


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens, which is micros per token; None where no price is known."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Usage of the model call of a message."""

    model_id: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_limit_tokens: int = 0
    cost_micros: int | None = None  # None when no price is known, 0 when it is free.
    runtime_ms: int = 0
    model_runtime_ms: int = 0
    provider: str = ""  # Provider and model names at the time of the call.
    model_name: str = ""
    price: Price | None = None  # At the time of the call.
    is_estimate: bool = False  # Whether its provider did not report all of the tokens.
    is_fallback: bool = False  # Whether the fallback model answered.


def cost_micros(price: Price | None, usage: UsageReported) -> int | None:
    """Return the cost in millionths of a dollar; None when it is not known, 0 when it is free.

    A component without a price counts as 0 as long as another used one has a price.
    """
    if price is None:
        return None
    components = (
        (price.input, usage.input_tokens),
        (price.output, usage.written_tokens),
        (price.cache_read, usage.cache_read_tokens),
        (price.cache_write, usage.cache_write_tokens),
    )
    priced = [(Fraction(each), tokens) for each, tokens in components if each is not None]
    is_used = any(tokens for _, tokens in components)
    if not priced or (is_used and not any(tokens for _, tokens in priced)):
        return None
    return math.ceil(sum(each * tokens for each, tokens in priced))


def billed_micros(price: Price | None, usage: UsageReported) -> int | None:
    """Return the cost as it is stored; an implausible one is stored as unknown."""
    micros = cost_micros(price, usage)
    return micros if micros is not None and 0 <= micros <= COST_MICROS_MAX else None


def is_plausible(usage: UsageReported) -> bool:
    """Return whether a provider's counts are plausible."""
    counts = (
        usage.input_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    )
    return all(0 <= count <= TOKENS_MAX for count in counts)
