"""Progress output of a start."""

import signal
from contextlib import suppress
from typing import Protocol, TextIO


class Progress(Protocol):
    """Prints lines for the user; a failure to print one is not an error."""

    def say(self, line: str) -> None:
        """Print one line."""
        ...

    def say_secret(self, line: str) -> None:
        """Print one line that contains a secret, and store it nowhere."""
        ...


class TextProgress:
    """Writes each line to a stream immediately."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, line: str) -> None:
        """Write the line; ignore a closed pipe or a full disk."""
        with suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def say_secret(self, line: str) -> None:
        """Write the line: the user chose the stream."""
        self.say(line)


class RunningLine:
    """One line on a terminal that is overwritten; on other outputs it is not shown."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._width = 0

    def show(self, line: str) -> None:
        """Show a line in place of the one before."""
        if not self._is_shown:
            return
        with suppress(OSError, ValueError):
            self._stream.write(f"\r{line.ljust(self._width)}")
            self._stream.flush()
        self._width = len(line)

    def clear(self) -> None:
        """Erase the line."""
        self.show("")
        if self._is_shown:
            with suppress(OSError, ValueError):
                self._stream.write("\r")
                self._stream.flush()


def step(done: str, seconds: float, detail: str = "") -> str:
    """Return the line for a finished step, with its time and details."""
    return f"  {done:<16} {seconds:5.2f} s  {detail}".rstrip()


def ending(exit_code: int) -> str:
    """Return an exit code as text."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"
