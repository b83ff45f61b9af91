"""How much memory a process took at most during a stretch of a test."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
NOW = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)


@dataclass(slots=True)
class MemoryPeak:
    """What was added at most, once the stretch is over."""

    added_bytes: int = 0


@contextmanager
def memory_peak(pid: int | None = None) -> Iterator[MemoryPeak]:
    """Measure what the block adds at most to what is resident when it begins, here if no pid."""
    process = Path(f"/proc/{'self' if pid is None else pid}")
    (process / "clear_refs").write_text("5")  # Forgets the highest mark so far.
    before_bytes = _resident_bytes(process, NOW)
    peak = MemoryPeak()
    yield peak
    peak.added_bytes = max(0, _resident_bytes(process, PEAK) - before_bytes)


def _resident_bytes(process: Path, mark: re.Pattern[str]) -> int:
    found = mark.search((process / "status").read_text())
    assert found is not None
    return int(found[1]) * 1024
