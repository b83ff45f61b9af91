"""Being the terminal of a process: what is typed, how large it is, which signals are sent."""

from dataclasses import dataclass

from toolrunner.primitives.domain import TerminalSize
from toolrunner.processes.input import Writes, Writing, resize
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.termination import Ends, SignalRequest


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal of one process; several may have it at a time."""

    live: LiveProcess
    writes: Writes
    ends: Ends

    def write(self, data: bytes) -> None:
        """Type; what is typed after the end is lost.

        Raises:
            InputFull: The process has not read what was typed before.
        """
        self.writes.send(self.live, Writing(data, keys=b"", is_end=False))

    def resize(self, size: TerminalSize) -> None:
        """Tell it how large it is."""
        resize(self.live, size)

    async def signal(self, number: int) -> None:
        """Send a signal to all that run under it."""
        if self.live.is_live:
            await self.ends.send(
                self.live, SignalRequest(number, leader_only=False, escalate_after_s=0.0)
            )
