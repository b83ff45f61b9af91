"""Figures of checkpoints: what a turn costs that changes files, by the number of files.

Run it with `python bench/checkpoints.py`, or name other sizes. It needs no stack: the part of
toolrunner that keeps checkpoints works on a directory with files of 2 KiB. It prints one JSON
object: milliseconds of the clock / of the processor.

    first       the first process of the first turn: everything is read and stored
    next        the first process of a later turn: nothing changed since
    again       another process of the same turn
    settle      finding what a process changed, 10 files of all
    tool        keeping one file before a tool changes it
    preview     what a restore would do
    plan        planning it, with the state before stored
    stored_mib  what is stored
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures

from parley.clock import SystemClock
from support.host.supervised import supervision
from toolrunner.checkpoints.domain import Entry, EntryKind, Turn
from toolrunner.checkpoints.scan import KeptChange
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.checkpoints.store import FILE
from toolrunner.directories.workspaces import Workspaces
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId

SIZES = (10, 1000, 50_000)
FILES_PER_DIRECTORY = 100
FILE_BYTES = 2048
CHANGED = 10
TIMES = 5
CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKSPACE = WorkspaceId("00000000-0000-0000-0000-000000000002")


def fill(root: Path, count: int) -> list[Path]:
    """Make that many files with different contents."""
    made = []
    for number in range(count):
        directory = root / f"d{number // FILES_PER_DIRECTORY}"
        if number % FILES_PER_DIRECTORY == 0:
            directory.mkdir()
        path = directory / f"f{number}"
        path.write_bytes(f"{number}\n".encode().ljust(FILE_BYTES, b"x"))
        # They are older than the clock's resolution, as nearly all files of a workspace are.
        os.utime(path, (1, 1))
        made.append(path)
    return made


class Figures:
    """Times of one workspace: of the clock and of the processor, in milliseconds."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self.checkpoints = checkpoints
        self._found: dict[str, list[tuple[float, float]]] = {}

    async def measure(self, name: str, work: Awaitable[object]) -> None:
        """Add how long work takes."""
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        await work
        took_s, cpu_s = time.perf_counter() - begun_s, time.process_time() - begun_cpu_s
        self._found.setdefault(name, []).append((took_s * 1000, cpu_s * 1000))

    async def turn(self, turn_id: int, made: list[Path]) -> None:
        """Run a turn that changes some files by a process, and one by a tool."""
        checkpoints, scope = self.checkpoints, scope_of(turn_id)
        await checkpoints.settle(WORKSPACE)
        await self.measure("next", checkpoints.before_process(scope))
        await self.measure("again", checkpoints.before_process(scope))
        for path in made[:CHANGED]:
            path.write_bytes(f"{turn_id}\n".encode().ljust(FILE_BYTES, b"y"))
        await self.measure("settle", checkpoints.settle(WORKSPACE))
        after = Entry(EntryKind.FILE, "0" * 64, is_kept=False)
        change = KeptChange(f"new{turn_id}", None, None, after)
        await self.measure("tool", checkpoints.keep(scope, (change,)))
        turn = Turn(CHAT, turn_id)
        await self.measure("preview", checkpoints.preview(scope, turn))
        await self.measure("plan", checkpoints.plan(scope, f"r{turn_id}", turn, ""))

    def medians(self) -> dict[str, str]:
        """Return the median of each."""
        return {
            name: " / ".join(f"{statistics.median(each):.1f}" for each in zip(*times, strict=True))
            for name, times in self._found.items()
        }


def scope_of(turn_id: int) -> Scope:
    """Return the scope of a turn."""
    return Scope(WORKSPACE, CHAT, turn_id=turn_id)


async def figures_of(count: int) -> dict[str, str]:
    """Return the figures of a workspace with that many files."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        workspaces = Workspaces(Path(directory) / "workspaces")
        workspace = workspaces.prepared(WORKSPACE)
        made = fill(workspace.root, count)
        async with Checkpoints(workspaces, clock, supervision(clock)) as checkpoints:
            figures = Figures(checkpoints)
            await figures.measure("first", checkpoints.before_process(scope_of(1)))
            for turn_id in range(2, 2 + TIMES):
                await figures.turn(turn_id, made)
        stored = (workspace.directory / FILE).stat().st_size
    return {**figures.medians(), "stored_mib": f"{stored / 1024**2:.1f}"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="numbers of files")
    sizes = parser.parse_args().sizes or SIZES
    print_figures({f"{size} files": asyncio.run(figures_of(size)) for size in sizes})


if __name__ == "__main__":
    main()
