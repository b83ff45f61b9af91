"""Costs against exact decimals, and what cannot be stored."""

from decimal import ROUND_CEILING, Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.models.domain.language_model import UsageReported
from chatd.models.domain.price import (
    COST_MICROS_MAX,
    TOKENS_MAX,
    ModelUse,
    Price,
    billed_micros,
    cost_micros,
    is_plausible,
)
from chatd.models.domain.profile import ModelProfile
from chatd.spend.domain.metering import Metered, doubt, metered, model_use
from chatd.spend.store.use_codec import use_from_json, use_to_json

# As many digits as any product and sum of the strategies can have.
EXACT = Context(prec=200)
PRICES = st.none() | st.decimals(0, 10_000, places=9)
COUNTS = st.integers(0, TOKENS_MAX)


@given(st.builds(Price, PRICES, PRICES, PRICES, PRICES), COUNTS, COUNTS, COUNTS, COUNTS)
def test_cost_is_the_exact_sum_rounded_up_once(
    price: Price, fresh: int, output: int, read: int, write: int
) -> None:
    usage = UsageReported(fresh, output, 0, read, write)
    components = (
        (price.input, fresh),
        (price.output, output),
        (price.cache_read, read),
        (price.cache_write, write),
    )
    total = Decimal(0)
    for each, tokens in components:
        if each is not None:
            total = EXACT.add(total, EXACT.multiply(each, Decimal(tokens)))
    rounded = int(total.to_integral_value(ROUND_CEILING, EXACT))
    is_used = any(tokens for _, tokens in components)
    is_priced_use = any(tokens for each, tokens in components if each is not None)
    is_priced = any(each is not None for each, _ in components)
    expected = rounded if is_priced and (is_priced_use or not is_used) else None
    assert cost_micros(price, usage) == expected
    assert billed_micros(price, usage) == (
        expected if expected is not None and expected <= COST_MICROS_MAX else None
    )


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(("count", "is_true"), [(-1, False), (0, True), (TOKENS_MAX, True)])
def test_counts_have_bounds(place: int, count: int, is_true: bool) -> None:
    assert is_plausible(counted(place, count)) == is_true
    assert not is_plausible(counted(place, TOKENS_MAX + 1))


def counted(place: int, count: int) -> UsageReported:
    first, second, third, fourth, fifth = (count if at == place else 1 for at in range(5))
    return UsageReported(first, second, third, fourth, fifth)


@pytest.mark.parametrize(
    ("price", "micros"),
    [(Decimal(10), COST_MICROS_MAX), (Decimal("10.000000000001"), None), (Decimal(-1), None)],
    ids=["at the bound", "above it", "below nothing"],
)
def test_a_cost_that_cannot_be_is_not_known(price: Decimal, micros: int | None) -> None:
    profile = ModelProfile("m", price=Price(price))
    usage = UsageReported(TOKENS_MAX)
    assert billed_micros(profile.price, usage) == micros
    assert model_use(profile, Metered(usage, False), alive_ms=0, model_ms=0).cost_micros == micros
    assert (doubt(profile, usage) is None) == (micros is not None)


def test_counts_that_cannot_be_true_are_as_good_as_none() -> None:
    profile = ModelProfile("m", 1000, Price(Decimal(1)), provider="p")
    wrong, guess = UsageReported(5, -1), UsageReported(3, 2)
    call = metered(wrong, is_complete=True, estimated=lambda: guess)
    used = model_use(profile, call, alive_ms=1, model_ms=2)
    assert used == ModelUse(
        "m",
        3,
        2,
        cost_micros=3,
        is_estimate=True,
        context_limit_tokens=1000,
        runtime_ms=1,
        model_runtime_ms=2,
        provider="p",
        price=profile.price,
    )
    assert doubt(profile, UsageReported(5, -1)) is not None
    assert doubt(profile, None) is None


@given(st.builds(Price, PRICES, PRICES, PRICES, PRICES))
def test_a_price_is_stored_to_its_last_digit(price: Price) -> None:
    use = ModelUse("m", 1, cost_micros=None, provider="p", price=price)
    assert use_from_json(use_to_json(use)) == use


def test_what_was_stored_before_there_were_prices_is_read() -> None:
    assert use_from_json('{"model_id": "m", "input_tokens": 3}') == ModelUse("m", 3)
