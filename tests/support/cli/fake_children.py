"""Processes that exist only as values, for tests of whoever starts and watches them."""

import asyncio
import itertools
from collections.abc import Iterator

from parley.cli.stack.plan import ProcessSpec, Readiness


class Journal:
    """What happened, in order, and a way to wait for it."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._changed = asyncio.Event()

    def write(self, entry: str) -> None:
        """Add an entry."""
        self.entries.append(entry)
        self._changed.set()

    async def until(self, entry: str, times: int = 1) -> None:
        """Wait until `entry` was written that many times."""
        while self.entries.count(entry) < times:
            self._changed.clear()
            await self._changed.wait()


class FakeChild:
    """A process that does what the test says."""

    def __init__(self, name: str, pid: int, journal: Journal) -> None:
        self.name = name
        self.pid = pid
        self.started_at = float(pid)
        self.exit_code: int | None = None
        self.ignores_terminate = False
        self._journal = journal
        self._ended = asyncio.Event()

    async def ended(self) -> int:
        await self._ended.wait()
        assert self.exit_code is not None
        return self.exit_code

    def end(self, exit_code: int) -> None:
        """Let the process end."""
        self.exit_code = exit_code
        self._ended.set()

    def terminate(self) -> None:
        self._journal.write(f"terminate {self.name}")
        if not self.ignores_terminate and self.exit_code is None:
            self.end(-15)

    def kill(self) -> None:
        self._journal.write(f"kill {self.name}")
        if self.exit_code is None:
            self.end(-9)


class FakeLauncher:
    """Starts fake children and writes down what happens to them."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.children: dict[str, FakeChild] = {}
        self.refusals = 0
        self.refusal: Exception = OSError("no memory")
        self.ignoring_terminate: set[str] = set()
        self._pids: Iterator[int] = itertools.count(1)

    def launch(self, spec: ProcessSpec) -> FakeChild:
        if self.refusals > 0:
            self.refusals -= 1
            self.journal.write(f"refuse {spec.name}")
            raise self.refusal
        self.journal.write(f"launch {spec.name}")
        child = FakeChild(spec.name, next(self._pids), self.journal)
        child.ignores_terminate = spec.name in self.ignoring_terminate
        self.children[spec.name] = child
        return child


class FakeProbe:
    """Finds ready whatever the test calls ready; everything, unless told otherwise."""

    def __init__(self) -> None:
        self.unready: set[str] = set()

    async def is_ready(self, signs: tuple[Readiness, ...]) -> bool:
        return not any(sign.target in self.unready for sign in signs)
