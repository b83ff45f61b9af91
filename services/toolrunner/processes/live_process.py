"""A process that this run of the service looks after: its record, its output, who waits for it."""

import asyncio
import os
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from toolrunner.journal.records import ProcessRecord
from toolrunner.primitives.domain import LIVE, Exit, ProcessState, StdinMode
from toolrunner.processes.input_buffer import ProcessInput
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.pipes import Pipes
from toolrunner.spawner.client.spawner import Launched

READS_MAX: Final = 16
#: As much of one process's output is read at once: some 40 MiB in a second.
TURN_S: Final = 0.05
TURN_BYTES: Final = 2 * 1024 * 1024
#: The part of a quota that is about memory.
MEMORY: Final = "memory_bytes"


class ChangeSignal:
    """Wakes everyone who waits for a change.

    On one event loop nothing happens between looking and waiting, so no wake-up is lost.
    """

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def changed(self) -> None:
        """Wake all."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Return at the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)


class LiveProcess:
    """A process, from the moment before its journal entry.

    Attributes:
        record: What is known of it, without what changes by itself.
        output: What it printed.
        input: Where it reads from; None if there is nothing to read.
        output_grew: Changes with every piece of output, at the end and when the node stops.
        ending: Changes at the end and when the node stops.
        settled: Set when it runs, or never will.
        ended: Set when its exit is known and its output read.
        drained: Set when nobody holds its output open any more.
        is_timed_out: Whether its time limit ends it.
        exceeded: The part of its workspace's quota that ends it, or one that it started.
        is_settled: Whether the journal has its end, so that it may be forgotten.
    """

    def __init__(
        self, record: ProcessRecord, output: KeptOutput, started_s: float, pipes: Pipes
    ) -> None:
        self.record = record
        self.output = output
        self.input: ProcessInput | None = None
        self.output_grew = ChangeSignal()
        self.ending = ChangeSignal()
        self.settled = asyncio.Event()
        self.ended = asyncio.Event()
        self.drained = asyncio.Event()
        self.is_timed_out = False
        self.exceeded = ""
        self.is_settled = False
        self._started_s = started_s
        self._pipes = pipes
        self._output_fd = -1
        self._turn_ends_s = 0.0
        self._turn_bytes = 0

    @property
    def is_live(self) -> bool:
        """Whether it starts or runs."""
        return self.record.state in LIVE

    @property
    def terminal_fd(self) -> int:
        """The terminal it runs under; -1 for none, or when nobody has it open any more."""
        return self._output_fd if self.record.stdin_mode is StdinMode.TERMINAL else -1

    def present(self, now_s: float) -> ProcessRecord:
        """Return what is known of it now."""
        name, log_start_bytes = self.output.log_place
        changes: dict[str, Any] = {}
        exit = self.record.exit
        if exit is not None and exit.has_open_pipes is self.drained.is_set():
            changes["exit"] = replace(exit, has_open_pipes=not exit.has_open_pipes)
        if self.is_live:
            changes["wall_duration_ms"] = self._wall_ms(now_s)
        return structs.replace(
            self.record,
            output_bytes=self.output.total_bytes,
            log_start_bytes=log_start_bytes,
            log_path=f"../logs/{name}" if name else "",
            **changes,
        )

    def run(self, launched: Launched) -> None:
        """Note that it runs, and read what it prints."""
        used = self.record.sandbox
        if used is not None:
            used = replace(used, layers=launched.layers)
        self.record = structs.replace(
            self.record, state=ProcessState.RUNNING, pid=launched.pid, sandbox=used
        )
        self.connect(launched)
        self.settled.set()

    def connect(self, launched: Launched) -> None:
        """Read what it prints, and have its input."""
        os.set_blocking(launched.output_fd, False)
        self._output_fd = launched.output_fd
        if launched.input_fd >= 0:
            is_terminal = self.record.stdin_mode is StdinMode.TERMINAL
            self.input = ProcessInput(launched.input_fd, is_terminal=is_terminal)
        self._pipes.add(launched.output_fd, self._read_in_turn)

    def read_rest(self) -> None:
        """Read what is there now; an output that nobody holds open is at its end then.

        Whoever was left behind may print without end, so this reads no more than a pipe holds.
        """
        for _ in range(READS_MAX):
            if self._output_fd < 0 or not self._read():
                return

    def fail(self, start_error: str, *, now: datetime) -> None:
        """Note that it never ran."""
        self.record = structs.replace(
            self.record, state=ProcessState.START_FAILED, start_error=start_error, ended_at=now
        )
        self._end()

    def exit(self, exit: Exit, *, now: datetime, now_s: float) -> None:
        """Note how it ended."""
        told = replace(
            exit,
            is_timed_out=self.is_timed_out,
            has_open_pipes=not self.drained.is_set(),
            is_oom_killed=exit.is_oom_killed or self.exceeded == MEMORY,
            exceeded=self.exceeded or (MEMORY if exit.is_oom_killed else ""),
        )
        self.record = structs.replace(
            self.record,
            state=ProcessState.EXITED,
            exit=told,
            ended_at=now,
            wall_duration_ms=self._wall_ms(now_s),
        )
        if self.input is not None:
            self.input.close()
        self._end()

    def exited_before(self) -> None:
        """Note that the record already tells how it ended."""
        self._end()

    def wake(self) -> None:
        """Have everyone who waits look again."""
        self.output_grew.changed()
        self.ending.changed()

    async def ends_within(self, limit_s: float) -> bool:
        """Wait for its end; return whether it came in time."""
        try:
            async with asyncio.timeout(limit_s):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Read and write no more."""
        self._stop_reading()
        if self.input is not None:
            self.input.close()

    def _end(self) -> None:
        self.settled.set()
        self.ended.set()
        self.wake()

    def _stop_reading(self) -> None:
        if self._output_fd >= 0:
            self._pipes.remove(self._output_fd)
            os.close(self._output_fd)
            self._output_fd = -1
        self.output.close()
        self.drained.set()

    def _wall_ms(self, now_s: float) -> int:
        return round((now_s - self._started_s) * 1000)

    def _read_in_turn(self) -> None:
        """Read once; who prints without end waits now and then, so that others have a turn."""
        before = self.output.total_bytes
        self._read()
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if now_s >= self._turn_ends_s:
            self._turn_ends_s, self._turn_bytes = now_s + TURN_S, 0
        self._turn_bytes += self.output.total_bytes - before
        if self._turn_bytes >= TURN_BYTES and self._output_fd >= 0:
            self._pipes.remove(self._output_fd)
            loop.call_at(self._turn_ends_s, self._go_on_reading, self._output_fd)

    def _go_on_reading(self, output_fd: int) -> None:
        # It may have been closed meanwhile.
        if self._output_fd == output_fd:
            self._pipes.add(output_fd, self._read_in_turn)

    def _read(self) -> bool:
        """Read once; return whether there was something."""
        try:
            may_grow = self.output.take(self._output_fd)
        except BlockingIOError:
            return False
        if may_grow:
            self.output_grew.changed()
        else:
            self._stop_reading()
        return may_grow
