"""How fast the machine was while something was measured on it.

Shared machines change their pace from hour to hour, by a factor of two and more. Times and rates of
two runs can be compared only beside what the same piece of plain Python took in each of them.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

STEPS = 1_000_000
TRIES = 5


def step_ns() -> float:
    """Return the processor time of one step of an empty loop at its best: 13 on a quick core."""
    best_ns = float("inf")
    for _ in range(TRIES):
        began_ns = time.process_time_ns()
        for _ in range(STEPS):
            pass
        best_ns = min(best_ns, (time.process_time_ns() - began_ns) / STEPS)
    return round(best_ns, 1)


def print_figures(figures: Mapping[str, Any]) -> None:
    """Print what was measured, with the pace of the machine at the end of it."""
    print(json.dumps({"step_ns": step_ns(), **figures}, indent=2))
