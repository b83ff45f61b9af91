"""What a start tells its user while it goes on."""

import signal
from contextlib import suppress
from typing import Protocol, TextIO


class Progress(Protocol):
    """Takes lines for the user; that one cannot be shown is no reason to stop."""

    def say(self, line: str) -> None:
        """Show one line."""
        ...

    def say_secret(self, line: str) -> None:
        """Show one line with a secret in it, and keep it nowhere."""
        ...


class TextProgress:
    """Writes each line to a stream at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, line: str) -> None:
        """Write the line; the reader may have gone away, or the disk be full."""
        with suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def say_secret(self, line: str) -> None:
        """Write the line: where it goes is the user's choice."""
        self.say(line)


class RunningLine:
    """One line on a terminal that is written over again; elsewhere it is not shown at all."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._width = 0

    def show(self, line: str) -> None:
        """Show a line in the place of the one before."""
        if not self._is_shown:
            return
        with suppress(OSError, ValueError):
            self._stream.write(f"\r{line.ljust(self._width)}")
            self._stream.flush()
        self._width = len(line)

    def clear(self) -> None:
        """Leave nothing of it."""
        self.show("")
        if self._is_shown:
            with suppress(OSError, ValueError):
                self._stream.write("\r")
                self._stream.flush()


class RecordedProgress:
    """Keeps the lines, for tests."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Keep the line."""
        self.lines.append(line)

    def say_secret(self, line: str) -> None:
        """Keep the line, like any other."""
        self.say(line)


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
