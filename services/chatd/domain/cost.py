"""What a model call costs: exact until the end, then rounded up once."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from chatd.domain.model import UsageReported


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens, which is micros per token; None where no price is known."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


def cost_micros(price: Price | None, usage: UsageReported) -> int | None:
    """Return the cost in millionths of a dollar; None when it is not known, 0 when it is free.

    A component without a price counts nothing as long as another one that was used has a price.
    """
    if price is None:
        return None
    components = (
        (price.input, usage.input_tokens),
        (price.output, usage.output_tokens),
        (price.cache_read, usage.cache_read_tokens),
        (price.cache_write, usage.cache_write_tokens),
    )
    priced = [(Fraction(each), tokens) for each, tokens in components if each is not None]
    is_used = any(tokens for _, tokens in components)
    if not priced or (is_used and not any(tokens for _, tokens in priced)):
        return None
    return math.ceil(sum(each * tokens for each, tokens in priced))
