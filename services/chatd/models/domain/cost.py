"""The cost of a model call: computed exactly, then rounded up once."""

import math
from fractions import Fraction

from chatd.models.domain.language_model import UsageReported
from chatd.models.domain.price import Price

__all__ = ["COST_MICROS_MAX", "TOKENS_MAX", "Price", "billed_micros", "cost_micros", "is_plausible"]

# Larger values are errors: no call uses or costs that much.
TOKENS_MAX = 10**12
COST_MICROS_MAX = 10**13


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
