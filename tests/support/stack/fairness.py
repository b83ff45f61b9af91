"""How much slower turns of one user were while another one was greedy, judged and as a table.

Shared by the measurement (`bench/fairness.py`) and the test of how it judges.
"""

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Durations of turns in milliseconds, by the kind of turns.
Turns = Mapping[str, list[float]]

COLUMNS = ("way", "turns", "p99 without", "p99 with", "ratio")


@dataclass(frozen=True, slots=True)
class WayFigures:
    """What turns of a user took with and without a member who was greedy in one way.

    Attributes:
        without_ms: Durations without the member, by the kind of turns.
        during_ms: Durations with the member, by the kind of turns.
        refused: How many messages of the user were refused meanwhile, by status, and how many
            turns and streams of the user failed, by what happened.
        restarts: How many processes of the stack were started again meanwhile.
    """

    without_ms: Turns
    during_ms: Turns
    refused: Mapping[str, int] = field(default_factory=dict)
    restarts: int = 0

    def ratios(self) -> dict[str, float]:
        """Return the ratio of the 99th percentiles by the kind of turns; infinite without turns."""
        return {
            kind: _ratio(without, self.during_ms.get(kind, []))
            for kind, without in self.without_ms.items()
        }

    def figures(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        kinds = {
            kind: compared(without, self.during_ms.get(kind, []))
            for kind, without in self.without_ms.items()
        }
        return {**kinds, "refused": dict(self.refused), "restarts": self.restarts}


def compared(without: list[float], during: list[float]) -> dict[str, Any]:
    """Return the figures of two samples of durations as JSON."""
    if not without or not during:
        return {"failed": {"turns_without": len(without), "turns_during": len(during)}}
    return {
        "ratio_p99": round(_ratio(without, during), 2),
        "without_ms": _described(without),
        "during_ms": _described(during),
    }


def unfair(found: Mapping[str, WayFigures], ratio_max: float) -> list[str]:
    """Return what is wrong, with the name of the way: ratios, refused messages and restarts."""
    return [
        f"{way}: {problem}" for way, each in found.items() for problem in _problems(each, ratio_max)
    ]


def table(found: Mapping[str, WayFigures]) -> list[str]:
    """Return the lines of a table, one for each way and kind of turns."""
    rows: list[tuple[str, ...]] = [COLUMNS]
    for way, each in found.items():
        for kind, ratio in each.ratios().items():
            times = (each.without_ms[kind], each.during_ms.get(kind, []))
            shown = (f"{_p99(times_ms):.0f} ms" if times_ms else "none" for times_ms in times)
            rows.append((way, kind, *shown, f"{ratio:.2f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _problems(figures: WayFigures, ratio_max: float) -> Iterator[str]:
    for kind, ratio in figures.ratios().items():
        if math.isinf(ratio):
            yield f"no turns of kind {kind!r} to compare"
        elif ratio > ratio_max:
            yield f"p99 of turns of kind {kind!r} is {ratio:.2f} times as long, at most {ratio_max}"
    for reason, count in figures.refused.items():
        yield f"the other user met {reason} {count} times"
    if figures.restarts:
        yield f"{figures.restarts} processes were started again"


def _ratio(without: list[float], during: list[float]) -> float:
    return _p99(during) / _p99(without) if without and during else math.inf


def _described(values: list[float]) -> dict[str, float]:
    return {
        "turns": len(values),
        "p50": round(statistics.median(values), 1),
        "p99": round(_p99(values), 1),
    }


def _p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]
