"""The cost of model calls."""

from decimal import Decimal

import pytest

from chatd.models.domain.language_model import UsageReported
from chatd.models.domain.price import Price, cost_micros

SONNET = Price(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"))


@pytest.mark.parametrize(
    ("price", "usage", "micros"),
    [
        (SONNET, UsageReported(1000, 100, 50, 2000, 400), 3000 + 1500 + 600 + 1500),
        (SONNET, UsageReported(cache_read_tokens=1), 1),
        (SONNET, UsageReported(cache_read_tokens=1, cache_write_tokens=1), 5),
        (SONNET, UsageReported(), 0),
        (None, UsageReported(10, 10), None),
        (Price(), UsageReported(10, 10), None),
        (Price(output=Decimal(2)), UsageReported(input_tokens=10), None),
        (Price(output=Decimal(2)), UsageReported(10, 10), 20),
        (Price(Decimal(0), Decimal(0)), UsageReported(10, 10), 0),
        (Price(Decimal("0.1"), Decimal("0.2")), UsageReported(1, 1), 1),
        (Price(Decimal("1e-28")), UsageReported(10**28), 1),
        (Price(Decimal("1.0000000000000000000000000000001")), UsageReported(10**12), 10**12 + 1),
    ],
    ids=[
        "all components, reasoning inside output",
        "rounded up",
        "rounded up once",
        "nothing used",
        "no price",
        "a price without components",
        "only unpriced components used",
        "an unpriced component counts nothing",
        "free",
        "exact where floats are not",
        "very small and very many",
        "more digits than a context holds",
    ],
)
def test_cost_is_exact_and_rounded_up_once(
    price: Price | None, usage: UsageReported, micros: int | None
) -> None:
    assert cost_micros(price, usage) == micros
