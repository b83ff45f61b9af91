"""Limits on the mirrors of a node: number, age and disk space."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1024 * 1024
ENTRIES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A mirror: its path, its size in bytes, and when it was last used, in seconds."""

    mirror: Path
    size: int
    used_s: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on all mirrors together.

    Attributes:
        count_max: Mirrors.
        size_max: Bytes.
        age_s: Seconds since one was last used.
    """

    count_max: int
    size_max: int
    age_s: float

    def surplus(self, kept: Sequence[Kept], now_s: float) -> tuple[Path, ...]:
        """Return the mirrors to remove to meet the limits, least recently used first."""
        gone = []
        count, size = len(kept), sum(each.size for each in kept)
        for each in sorted(kept, key=lambda each: each.used_s):
            is_old = now_s - each.used_s > self.age_s
            if is_old or count > self.count_max or size > self.size_max:
                gone.append(each.mirror)
                count, size = count - 1, size - each.size
        return tuple(gone)
