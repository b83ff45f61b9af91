"""How long to wait before a crashed process is started again."""

FIRST_S = 0.2
LONGEST_S = 10.0
#: A process that was healthy for so long starts with a clean slate.
HEALTHY_AFTER_S = 30.0


def delay_s(failures: int) -> float:
    """Return the wait after `failures` crashes in a row, of which the last just happened."""
    return min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 16))


def failures_in_a_row(before: int, healthy_s: float) -> int:
    """Return the count after one more crash, which followed `healthy_s` of health."""
    return 1 if healthy_s >= HEALTHY_AFTER_S else before + 1
