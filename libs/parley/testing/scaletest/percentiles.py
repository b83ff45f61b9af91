"""Percentiles of durations; pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles of a duration, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, values_s: Iterable[float]) -> "Percentiles | None":
        """Return the percentiles of durations in seconds; None if there are none."""
        ordered = sorted(values_s)
        if not ordered:
            return None
        shown = [
            round(ordered[_place(share, len(ordered))] * 1000, 1) for share in (0.5, 0.95, 0.99, 1)
        ]
        return cls(len(ordered), *shown)


def _place(share: float, count: int) -> int:
    """Return the index of the smallest value that this share of all values does not exceed."""
    return max(0, math.ceil(share * count) - 1)
