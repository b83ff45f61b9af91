"""Prices of a small shop, with a bug for the demo to repair."""


def total(prices: list[int], *, discount_percent: int = 0) -> int:
    """Return what a basket costs, in cents."""
    return sum(prices) * discount_percent // 100
