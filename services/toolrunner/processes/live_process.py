"""A process that is monitored by this run of the service: its record, output and waiters."""

import asyncio
import os
import select
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from toolrunner.journal.records import LIVE, ProcessRecord, ProcessState, StdinMode
from toolrunner.primitives.domain import NO_CHAT, ChatId, Exit
from toolrunner.processes.input_buffer import ProcessInput
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.scratch import is_reader
from toolrunner.spawner.client.spawner import Launched

READS_MAX: Final = 16
#: The read quota of one process: some 40 MiB per second.
TURN_S: Final = 0.05
TURN_BYTES: Final = 2 * 1024 * 1024
#: So long the end of an output waits for more, if a secret may begin there.
HOLD_S: Final = 0.2
#: The memory part of a quota.
MEMORY: Final = "memory_bytes"
#: What chatd starts in a new terminal of a person.
INTERACTIVE_SHELL: Final = 'exec "${SHELL:-/bin/sh}" -i'
#: So many outputs are read in one iteration; that takes a millisecond or two.
READ_TOGETHER: Final = 16


class Pipes:
    """Calls the readers of readable outputs, a few at a time.

    An event loop runs all ready callbacks before any of them runs again. With hundreds of processes
    that print continuously such an iteration takes a tenth of a second and more, and other calls
    need several iterations each. So all outputs are in one epoll set, which is one descriptor for
    the loop: in each iteration a few are read, and the kernel returns those last the next time.
    """

    def __init__(self) -> None:
        self._readers: dict[int, Callable[[], object]] = {}
        self._epoll: select.epoll | None = None

    def add(self, fd: int, read: Callable[[], object]) -> None:
        """Register `read`, called whenever the descriptor is readable or at EOF."""
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._read_some)
        self._readers[fd] = read
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Unregister a descriptor, which must still be open."""
        if self._readers.pop(fd, None) is not None and self._epoll is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Unregister all descriptors."""
        self._readers.clear()
        if self._epoll is not None:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _read_some(self) -> None:
        assert self._epoll is not None
        for fd, _ in self._epoll.poll(0, READ_TOGETHER):
            # An earlier callback may have removed this one.
            if (read := self._readers.get(fd)) is not None:
                read()


class ChangeSignal:
    """Wakes all waiters at a change.

    All calls are on one event loop, so that no change is lost between a check and the wait.
    """

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def changed(self) -> None:
        """Wake all waiters."""
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


def is_persons(record: ProcessRecord) -> bool:
    """Return whether a process changes files for a person from its start on.

    A shell in a terminal does only once something is typed, and one with an owner serves chats.
    """
    is_idle = record.stdin_mode is StdinMode.TERMINAL and record.command == INTERACTIVE_SHELL
    return not (record.chat_id or record.needs_owner or is_reader(record) or is_idle)


class LiveProcess:
    """A process, from the moment before its journal entry.

    Attributes:
        record: Its record, without the values that change continuously.
        output: Its output.
        input: Its standard input; None if it has none.
        output_grew: Changes with every piece of output, at the end and when the node stops.
        ending: Changes at the end and when the node stops.
        settled: Set when it runs, or never will.
        ended: Set when its exit is known and its output read.
        drained: Set when no process has its output open.
        is_timed_out: Whether its time limit ends it.
        exceeded: The part of its workspace's quota for which it, or a descendant, is ended.
        is_settled: Whether its end is in the journal, so that it may be dropped from memory.
        is_typed_into: Whether a person wrote to it, and may change files by it.
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
        self.is_typed_into = False
        self._started_s = started_s
        self._pipes = pipes
        self._output_fd = -1
        self._turn_ends_s = 0.0
        self._turn_bytes = 0
        self._is_paused = False
        self._read_s = 0.0
        self._release_timer: asyncio.TimerHandle | None = None

    @property
    def is_live(self) -> bool:
        """Whether it is starting or running."""
        return self.record.state in LIVE

    @property
    def authors(self) -> frozenset[ChatId]:
        """Whose changes of files it may make now: its chat's, and those of a person as of none."""
        is_ours = self.is_typed_into or is_persons(self.record)
        chats = {self.record.chat_id} - {NO_CHAT}
        return frozenset({*chats, NO_CHAT} if is_ours else chats)

    @property
    def terminal_fd(self) -> int:
        """The terminal it runs under; -1 for none, or when no process has it open."""
        return self._output_fd if self.record.stdin_mode is StdinMode.TERMINAL else -1

    def present(self, now_s: float) -> ProcessRecord:
        """Return its current record."""
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
        """Record that it runs, and begin to read its output."""
        used = self.record.sandbox
        if used is not None:
            used = replace(used, layers=launched.layers)
        self.record = structs.replace(
            self.record, state=ProcessState.RUNNING, pid=launched.pid, sandbox=used
        )
        self.connect(launched)
        self.settled.set()

    def connect(self, launched: Launched) -> None:
        """Begin to read its output, and open its input."""
        os.set_blocking(launched.output_fd, False)
        self._output_fd = launched.output_fd
        if launched.input_fd >= 0:
            is_terminal = self.record.stdin_mode is StdinMode.TERMINAL
            self.input = ProcessInput(launched.input_fd, is_terminal=is_terminal)
        self._pipes.add(launched.output_fd, self._read_in_turn)

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask more secrets in all output that follows."""
        self.output.hide(secrets)
        self.output_grew.changed()

    def read_rest(self) -> None:
        """Read the available output; an output that no process has open is at its end then.

        A descendant may print without end, so this reads no more than a pipe holds.
        """
        for _ in range(READS_MAX):
            if self._output_fd < 0 or not self._read():
                return

    def fail(self, start_error: str, *, now: datetime) -> None:
        """Record that it was not executed."""
        self.record = structs.replace(
            self.record, state=ProcessState.START_FAILED, start_error=start_error, ended_at=now
        )
        self._end()

    def exit(self, exit: Exit, *, now: datetime, now_s: float) -> None:
        """Record how it ended."""
        ended_as = replace(
            exit,
            is_timed_out=self.is_timed_out,
            has_open_pipes=not self.drained.is_set(),
            is_oom_killed=exit.is_oom_killed or self.exceeded == MEMORY,
            exceeded=self.exceeded or (MEMORY if exit.is_oom_killed else ""),
        )
        self.record = structs.replace(
            self.record,
            state=ProcessState.EXITED,
            exit=ended_as,
            ended_at=now,
            wall_duration_ms=self._wall_ms(now_s),
        )
        if self.input is not None:
            self.input.close()
        self.output.release()
        self._end()

    def exited_before(self) -> None:
        """Mark it as ended; the record already contains its exit."""
        self._end()

    def wake(self) -> None:
        """Wake all waiters, to check again."""
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
        """Close its output and input."""
        self._stop_reading()
        if self.input is not None:
            self.input.close()

    def _end(self) -> None:
        self.settled.set()
        self.ended.set()
        self.wake()

    def _stop_reading(self) -> None:
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        if self._output_fd >= 0:
            self._pipes.remove(self._output_fd)
            os.close(self._output_fd)
            self._output_fd = -1
        self.output.close()
        self.drained.set()

    def _wall_ms(self, now_s: float) -> int:
        return round((now_s - self._started_s) * 1000)

    def _read_in_turn(self) -> bool:
        """Read once; a process that exceeds its read quota pauses, so that others are read.

        Return whether there was data.
        """
        before = self.output.total_bytes
        had_data = self._read()
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if now_s >= self._turn_ends_s:
            self._turn_ends_s, self._turn_bytes = now_s + TURN_S, 0
        self._turn_bytes += self.output.total_bytes - before
        if self._turn_bytes >= TURN_BYTES and self._output_fd >= 0:
            self._is_paused = True
            self._pipes.remove(self._output_fd)
            loop.call_at(self._turn_ends_s, self._go_on_reading, self._output_fd)
        return had_data

    def _go_on_reading(self, output_fd: int) -> None:
        self._is_paused = False
        # It may have been closed meanwhile.
        if self._output_fd == output_fd:
            self._pipes.add(output_fd, self._read_in_turn)

    def _read(self) -> bool:
        """Read once; return whether there was data."""
        try:
            may_grow = self.output.take(self._output_fd)
        except BlockingIOError:
            return False
        if may_grow:
            self.output_grew.changed()
            self._read_s = asyncio.get_running_loop().time()
            if self.output.is_holding:
                self._release_at(self._read_s + HOLD_S)
        else:
            self._stop_reading()
        return may_grow

    def _release_at(self, when_s: float) -> None:
        if self._release_timer is None:
            self._release_timer = asyncio.get_running_loop().call_at(when_s, self._release)

    def _release(self) -> None:
        """Store the bytes that wait for more, if none came in time."""
        self._release_timer = None
        if not self.output.is_holding:
            return
        now_s = asyncio.get_running_loop().time()
        if self._is_paused:
            # The rest of a secret may be there, and is read when its turn comes.
            self._release_at(now_s + HOLD_S)
        elif now_s < self._read_s + HOLD_S:
            self._release_at(self._read_s + HOLD_S)
        elif not self._read_in_turn():
            self.output.release()
            self.output_grew.changed()
