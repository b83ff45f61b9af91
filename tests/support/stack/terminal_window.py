"""A pseudo-terminal with a `parley` command in it, which a test types into."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from support.stack.local_stack import LocalStack

SEEN_S_MAX = 30.0
LOOKED_AT_BYTES = 4096


class Window:
    """A terminal with the command in it, and all that it showed."""

    def __init__(self, ours: int, process: "subprocess.Popen[bytes]") -> None:
        self.ours = ours
        self.process = process
        self.shown = bytearray()

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the terminal."""
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self.ours, text.encode())

    def until(self, pattern: bytes, *, within_s: float = SEEN_S_MAX) -> "re.Match[bytes]":
        """Read until it was shown."""
        deadline = monotonic() + within_s
        while (found := re.search(pattern, self.shown[-LOOKED_AT_BYTES:])) is None:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - monotonic()))
            assert ready, (pattern, self.shown[-LOOKED_AT_BYTES:])
            self.shown += os.read(self.ours, 65536)
        return found

    def ended(self, *, within_s: float = SEEN_S_MAX) -> int:
        """Wait for the end of the command and return its exit code."""
        return self.process.wait(within_s)


@contextmanager
def window(stack: LocalStack, *words: str, **variables: str) -> Iterator[Window]:
    """Call `parley` in a terminal; afterwards that is as it was."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(theirs)
    with subprocess.Popen(
        stack.command(*words),
        env=stack.variables() | variables,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        try:
            yield Window(ours, process)
            assert termios.tcgetattr(theirs) == before
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)
