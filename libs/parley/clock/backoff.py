"""Delays between repeated attempts."""


def backoff_s(failures: int, first_s: float, last_s: float) -> float:
    """Return the delay after so many failures in a row: it doubles from `first_s` to `last_s`."""
    return min(last_s, first_s * 2.0 ** min(failures - 1, 16))
