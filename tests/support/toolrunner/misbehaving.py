"""Commands that take all they can get, and what that costs those who have nothing to do with them.

Shared by tests and measurements, so that both mean the same.
"""

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

FORK = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
MEMORY = """
import os
for _ in range(8): os.fork()
while True:
    try:
        kept = []
        while True: kept.append(bytearray(1 << 20))
    except MemoryError:
        kept = []
"""
SPIN = """
import os
for _ in range(4): os.fork()
while True: pass
"""

#: What is run, as text for a shell; each goes on until it is ended.
BOMBS = {
    "fork bomb": f"exec python3 -I -S -c '{FORK}'",
    "memory bomb": f"while :; do python3 -I -S -c '{MEMORY}'; done",
    "disk fill": "i=0; while :; do head -c 64M /dev/zero > big-$i; i=$((i+1)); done",
    "disk churn": "while :; do head -c 64M /dev/zero > big; cp big other; rm big other; done",
    "many files": "mkdir -p d; i=0; while :; do : > d/$i; i=$((i+1)); done",
    "output flood": "exec yes",
    "cpu spin": f"exec python3 -I -S -c '{SPIN}'",
}


@dataclass(frozen=True)
class Latency:
    """How long something took, again and again, in milliseconds."""

    times_ms: tuple[float, ...]

    @property
    def p50_ms(self) -> float:
        return round(statistics.median(self.times_ms), 2)

    @property
    def p99_ms(self) -> float:
        ordered = sorted(self.times_ms)
        return round(ordered[max(0, round(len(ordered) * 0.99) - 1)], 2)

    def figures(self) -> dict[str, float]:
        return {"p50_ms": self.p50_ms, "p99_ms": self.p99_ms}


async def latency(work: Callable[[], Awaitable[object]], rounds: int) -> Latency:
    """Do something again and again."""
    times = []
    for _ in range(rounds):
        begun_s = time.perf_counter()
        await work()
        times.append((time.perf_counter() - begun_s) * 1000)
    return Latency(tuple(times))


@dataclass(frozen=True)
class Felt:
    """What a neighbour felt: before and after somebody misbehaved, and meanwhile."""

    calm: Latency
    during: Latency

    @property
    def p99_ratio(self) -> float:
        return round(self.during.p99_ms / self.calm.p99_ms, 2)

    def figures(self) -> dict[str, object]:
        return {
            "calm": self.calm.figures(),
            "during": self.during.figures(),
            "p50_ratio": round(self.during.p50_ms / self.calm.p50_ms, 2),
            "p99_ratio": self.p99_ratio,
        }
