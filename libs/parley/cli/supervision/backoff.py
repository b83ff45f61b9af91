"""The delay before a crashed process is restarted."""

FIRST_S = 0.2
LONGEST_S = 10.0
#: After this time of health the count of failures is reset.
HEALTHY_AFTER_S = 30.0


def delay_s(failures: int) -> float:
    """Return the delay after `failures` crashes in a row, including the last one."""
    return min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 16))


def failures_in_a_row(before: int, healthy_s: float) -> int:
    """Return the count after one more crash, which followed `healthy_s` of health."""
    return 1 if healthy_s >= HEALTHY_AFTER_S else before + 1
