"""Distributions in four numbers; pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Percentiles:
    """How long something took, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, values_s: Iterable[float]) -> "Percentiles | None":
        """Return the percentiles of some times in seconds; None of none."""
        ordered = sorted(values_s)
        if not ordered:
            return None
        shown = [
            round(ordered[_place(share, len(ordered))] * 1000, 1) for share in (0.5, 0.95, 0.99, 1)
        ]
        return cls(len(ordered), *shown)


def _place(share: float, count: int) -> int:
    """Return the place of the smallest value that so much of all is not above."""
    return max(0, math.ceil(share * count) - 1)
