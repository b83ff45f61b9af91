"""What a start tells its user while it goes on."""

import signal
from typing import Protocol, TextIO


class Progress(Protocol):
    """Takes lines for the user."""

    def say(self, line: str) -> None:
        """Show one line."""
        ...


class TextProgress:
    """Writes each line to a stream at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, line: str) -> None:
        """Write the line; a reader that went away is no reason to stop."""
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            return


class RecordedProgress:
    """Keeps the lines, for tests."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Keep the line."""
        self.lines.append(line)


def step(done: str, seconds: float, detail: str = "") -> str:
    """Return the line for a finished step, its time and what there is to say about it."""
    return f"  {done:<16} {seconds:5.2f} s  {detail}".rstrip()


def ending(exit_code: int) -> str:
    """Return what an exit code says, in words."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"
