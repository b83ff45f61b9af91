"""An attached terminal of a process: input, size and signals."""

from dataclasses import dataclass

from toolrunner.primitives.domain import TerminalSize
from toolrunner.processes.input import Writes, Writing, resize
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.termination import Ends, SignalRequest


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal of one process; several callers may be attached at a time."""

    live: LiveProcess
    writes: Writes
    ends: Ends

    def write(self, data: bytes) -> None:
        """Write input; input after the end is dropped.

        Raises:
            InputFull: The process has not read the earlier input.
        """
        self.writes.send(self.live, Writing(data, keys=b"", is_end=False))

    def resize(self, size: TerminalSize) -> None:
        """Set its size."""
        resize(self.live, size)

    async def signal(self, number: int) -> None:
        """Send a signal to all processes under it."""
        if self.live.is_live:
            await self.ends.send(
                self.live, SignalRequest(number, leader_only=False, escalate_after_s=0.0)
            )
