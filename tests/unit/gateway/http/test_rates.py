"""Buckets of requests: what fits in a minute, and how the rest is told to wait."""

import pytest

from gateway.http.limits.rates import Level, Rate, RateQuotas, Rates
from gateway.http.problems.errors import HttpProblem


def test_a_quota_may_come_at_once_and_then_evenly() -> None:
    rate = Rate("user", 3)
    assert [rate.count("ann", 0.0) for _ in range(4)] == [
        Level(2, 20.0),
        Level(1, 40.0),
        Level(0, 60.0),
        Level(0, 60.0, wait_s=20.0),
    ]
    assert rate.count("ann", 20.0) == Level(0, 60.0)
    assert rate.count("ann", 79.0).wait_s is None
    assert rate.count("ann", 500.0) == Level(2, 20.0)


def test_refused_requests_do_not_count() -> None:
    rate = Rate("user", 1)
    rate.count("ann", 0.0)
    waits = [rate.count("ann", 0.0).wait_s for _ in range(5)]
    assert waits == [60.0] * 5


def test_subjects_do_not_share_a_bucket() -> None:
    rate = Rate("user", 1)
    rate.count("ann", 0.0)
    assert rate.count("bob", 0.0) == Level(0, 60.0)


def test_a_flood_of_subjects_is_forgotten_and_busy_ones_last() -> None:
    rate = Rate("address", 2, subjects_max=10)
    for number in range(100):
        rate.count(f"address {number}", 0.0)
        rate.count("busy", 0.0)
    assert rate.count("busy", 0.0).wait_s is not None
    assert len(rate._empty_at) <= 11


def test_headers_name_every_policy_and_what_is_left() -> None:
    rates = Rates(RateQuotas(address=10, user=2, key=0))
    headers: dict[str, str] = {}
    for name, subject in (("address", "192.0.2.1"), ("user", "ann"), ("key", "k")):
        rates.count(name, subject, 0.0, headers)
    assert headers == {
        "ratelimit-policy": '"address";q=10;w=60, "user";q=2;w=60',
        "ratelimit": '"address";r=9;t=6, "user";r=1;t=30',
    }


def test_a_refusal_says_how_long_to_wait() -> None:
    rates = Rates(RateQuotas(key=1))
    rates.count("key", "k", 0.0, {})
    headers: dict[str, str] = {}
    with pytest.raises(HttpProblem) as refused:
        rates.count("key", "k", 15.0, headers)
    assert (refused.value.code, refused.value.retry_after_s) == ("TOO_MANY_REQUESTS", 45.0)
    assert headers["ratelimit"] == '"key";r=0;t=45'
