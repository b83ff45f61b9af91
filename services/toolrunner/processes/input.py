"""Input of processes: writes and terminal resizes, each request once, and attached terminals."""

from collections.abc import Callable
from dataclasses import dataclass

from toolrunner.checkpoints.service import Checkpoints
from toolrunner.journal.journal import Begun, Known, NotBegun, first_response
from toolrunner.journal.records import Effect
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import ProcessId, Scope
from toolrunner.primitives.errors import NotAttachable, ProcessNotRunning, ToolrunnerError
from toolrunner.processes.domain import TerminalSize
from toolrunner.processes.input_buffer import END_OF_TRANSMISSION
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.monitor import ProcessMonitor
from toolrunner.processes.registry import Registry
from toolrunner.processes.scratch import is_reader
from toolrunner.processes.termination import ProcessTerminator, SignalRequest
from toolrunner.spawner import set_size


@dataclass(frozen=True, slots=True)
class InputWrite:
    """The data to write."""

    data: bytes
    keys: bytes  # The bytes that the keys send.
    is_end: bool


@dataclass(frozen=True, slots=True)
class InputWriter:
    """Writes to processes.

    Attributes:
        cursor_of: Reads from a response in the journal the output cursor before the write.
    """

    journal: JournalThread
    registry: Registry
    monitor: ProcessMonitor
    cursor_of: Callable[[bytes], int]
    checkpoints: Checkpoints | None = None  # None if nothing is kept of changed files.

    async def write(
        self, effect: Effect, scope: Scope, process_id: ProcessId, input_write: InputWrite
    ) -> int:
        """Write once, and return the output cursor before that.

        Raises:
            OutcomeUnknown: The request was received before, and it is unknown whether it was
                written.
            ToolrunnerError: It is refused, and nothing was written.
        """
        live = self.registry.live(process_id)
        refusal = self.refusal(process_id, live, wants_terminal=bool(input_write.keys))
        beginning = await self.journal.run(
            lambda journal: journal.begin(effect, None, may_begin=refusal is None)
        )
        if isinstance(beginning, NotBegun) and refusal is not None:
            raise refusal
        if isinstance(beginning, Known):
            response = first_response(beginning.execution)
            return self.cursor_of(response) if response else 0
        assert live is not None
        before = self.registry.present(live)
        await live.settled.wait()
        await self.before_input(live, scope)
        try:
            self.send(live, input_write)
        except ToolrunnerError:
            await self.journal.run(lambda journal: journal.withdraw(effect))
            raise
        response = effect.encode(before)
        await self.journal.run(lambda journal: journal.finish(effect, response, None))
        return before.output_bytes

    async def resize(self, effect: Effect, process_id: ProcessId, size: TerminalSize) -> None:
        """Change the size of a terminal.

        Raises:
            ToolrunnerError: It is refused, and nothing was changed.
        """
        live = self.registry.live(process_id)
        refusal = self.refusal(process_id, live, wants_terminal=True)
        beginning = await self.journal.run(
            lambda journal: journal.begin(effect, None, may_begin=refusal is None)
        )
        if isinstance(beginning, NotBegun) and refusal is not None:
            raise refusal
        if isinstance(beginning, Begun) and live is not None:
            resize(live, size)
            response = effect.encode(self.registry.present(live))
            await self.journal.run(lambda journal: journal.finish(effect, response, None))

    async def before_input(self, live: LiveProcess, scope: Scope) -> None:
        """Count a person who writes to a process as an author of what changes from now on."""
        is_person = not scope.turn_id and not scope.chat_id and not live.record.needs_owner
        if is_person and not live.is_typed_into and not is_reader(live.record):
            live.is_typed_into = True
            if self.checkpoints is not None:
                await self.checkpoints.before_process(scope)

    def send(self, live: LiveProcess, input_write: InputWrite) -> None:
        """Write to a process.

        Raises:
            InputFull: It has not read the earlier input, and nothing of this was written.
        """
        if live.input is None:
            return
        data = input_write.data + input_write.keys
        if input_write.is_end and live.input.is_terminal:
            # In one write, so that the end is not refused after its data was accepted.
            live.input.write(data + END_OF_TRANSMISSION)
            return
        live.input.write(data)
        if input_write.is_end:
            self.monitor.end_input(live)

    def refusal(
        self, process_id: ProcessId, live: LiveProcess | None, *, wants_terminal: bool
    ) -> ToolrunnerError | None:
        """Return why a process cannot be written to, or None."""
        if live is None or not live.is_live:
            return ProcessNotRunning(process_id)
        if live.input is None or not live.input.is_open:
            return NotAttachable(process_id, "stdin")
        if wants_terminal and not live.input.is_terminal:
            return NotAttachable(process_id, "tty")
        return None


def resize(live: LiveProcess, size: TerminalSize) -> None:
    """Set the size of a terminal."""
    if live.terminal_fd >= 0:
        set_size(live.terminal_fd, size.rows, size.columns)


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal of one process; several callers may be attached at a time."""

    live: LiveProcess
    scope: Scope
    input_writer: InputWriter
    terminator: ProcessTerminator

    async def write(self, data: bytes) -> None:
        """Write input; input after the end is dropped.

        Raises:
            InputFull: The process has not read the earlier input.
        """
        await self.input_writer.before_input(self.live, self.scope)
        self.input_writer.send(self.live, InputWrite(data, keys=b"", is_end=False))

    def resize(self, size: TerminalSize) -> None:
        """Set its size."""
        resize(self.live, size)

    async def signal(self, number: int) -> None:
        """Send a signal to all processes under it."""
        if self.live.is_live:
            await self.terminator.send(
                self.live, SignalRequest(number, leader_only=False, escalate_after_s=0.0)
            )
