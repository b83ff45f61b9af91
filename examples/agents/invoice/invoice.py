"""The amounts of an invoice, in cents; two of them are left for the agents of the demo."""

TAX_PERCENT = 19


def tax(amount: int) -> int:
    """Return the tax on an amount, rounded down."""
    raise NotImplementedError


def net(prices: list[int]) -> int:
    """Return what the goods cost."""
    return sum(prices)


def shipping(amount: int) -> int:
    """Return what it costs to send goods of an amount: nothing for large orders."""
    raise NotImplementedError


def total(prices: list[int]) -> int:
    """Return what is to be paid."""
    amount = net(prices)
    return amount + tax(amount) + shipping(amount)
