"""A remote terminal: sends keystrokes to a process and prints its output.

The process outlives every connection. A connection that is lost, or silent for longer than the
heartbeat allows, is reopened at the byte of the output that was received last; unsent input is sent
then. Keystrokes in transit when a connection broke are lost, as the screen shows.
"""

import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

from parley.cli.api.client import ApiRefused, Unreachable
from parley.cli.api.server import Server
from parley.cli.api.websocket import Closed, Received, WebSocket
from parley.cli.errors import CliError

#: Ctrl-], as in telnet: programs do not use it, and it is one key.
LEAVE: Final = b"\x1d"
END_OF_INPUT: Final = b"\x04"
READ_BYTES: Final = 4096
#: How long a lost connection is retried, and how often.
RETURN_S: Final = 30.0
PAUSE_S: Final = 0.5
#: Three heartbeats are missing.
SILENCE_S: Final = 45.0
SIGNALLED: Final = 128
OUTPUT_GONE: Final = "OUTPUT_GONE"
LOST: Final = "[The connection is lost and tried again; Ctrl-] leaves the shell.]"
GAP: Final = "[Some output is no longer there.]"


@dataclass(frozen=True, slots=True)
class Exited:
    """The process ended, with the exit code as in a shell."""

    code: int


@dataclass(frozen=True, slots=True)
class Detached:
    """The user detached; the process keeps running."""

    process_id: str


@dataclass
class RemoteShell:
    """A process with a terminal in a workspace, and this command's own terminal.

    Attributes:
        path: The path of the workspace.
        pause: Sleeps that many seconds.
        process_id: The process to attach to; empty for a new shell.
        workdir: Where a new shell starts.
        cursor: The bytes of output received; None before the first connection.
        silence_s: How long a connection may be silent.
    """

    server: Server
    path: str
    pause: Callable[[float], object]
    process_id: str = ""
    workdir: str = ""
    input_fd: int = 0
    output_fd: int = 1
    cursor: int | None = None
    silence_s: float = SILENCE_S
    _unsent: bytes = field(default=b"", init=False)
    _is_ended: bool = field(default=False, init=False)
    _told_size: os.terminal_size | None = field(default=None, init=False)

    def run(self) -> Exited | Detached:
        """Attach the terminal until the process ends or the user detaches.

        Raises:
            CliError: The process cannot be attached to, or is lost.
        """
        with _raw(self.input_fd), _resizes() as resized_fd:
            while True:
                connection = self._connected()
                if connection is None:
                    return Detached(self.process_id)
                try:
                    outcome = self._spoken(connection, resized_fd)
                finally:
                    connection.leave()
                if outcome is not None:
                    return outcome

    def _connected(self) -> WebSocket | None:
        """Connect; a reconnect is retried for a while, or until the user detaches (None)."""
        is_first = self.cursor is None
        until_s = monotonic() + RETURN_S
        is_told = False
        while True:
            try:
                return WebSocket.opened(self.server, self._target())
            except ApiRefused as error:
                oldest = int(error.facts.get("oldest_cursor", 0))
                if error.code == OUTPUT_GONE and oldest > (self.cursor or 0):
                    self.cursor = oldest
                    self._note(GAP)
                    continue
                if is_first or error.status < 500 or monotonic() >= until_s:
                    raise
            except Unreachable:
                if is_first or monotonic() >= until_s:
                    raise
            if not is_told:
                self._note(LOST)
                is_told = True
            if self._is_left_meanwhile():
                return None

    def _is_left_meanwhile(self) -> bool:
        """Wait for a retry; return whether the user detached meanwhile."""
        if self._is_ended or not os.isatty(self.input_fd):
            self.pause(PAUSE_S)
            return False
        if not select.select([self.input_fd], [], [], PAUSE_S)[0]:
            return False
        before, leave, _ = self._typed().partition(LEAVE)
        self._unsent = (self._unsent + before)[:READ_BYTES]
        return bool(leave) or self._is_ended

    def _target(self) -> str:
        asked: dict[str, object] = {}
        self._told_size = size = self._size()
        if size is not None:
            asked |= {"rows": size.lines, "columns": size.columns}
        if not self.process_id:
            asked |= {"workdir": self.workdir} if self.workdir else {}
            return f"{self.path}/terminal?{urlencode(asked)}"
        asked["cursor"] = self.cursor or 0
        return f"{self.path}/processes/{self.process_id}/terminal?{urlencode(asked)}"

    def _spoken(self, connection: WebSocket, resized_fd: int) -> Exited | Detached | None:
        """Pass input and output on; return None if the connection is lost."""
        outcome = self._heard(connection, connection.early())
        silent_s = monotonic() + self.silence_s
        while outcome is None and (rest_s := silent_s - monotonic()) > 0:
            # Input is read once the process id is known, so that it can be sent again to that
            # process.
            hears = self.cursor is not None and not self._is_ended
            typed = [self.input_fd] if hears else []
            ready, _, _ = select.select([connection.fileno(), resized_fd, *typed], [], [], rest_s)
            try:
                if resized_fd in ready:
                    os.read(resized_fd, READ_BYTES)
                # Also when there is input, which may have been read before the signal came.
                self._tell_size(connection)
                if self.input_fd in ready and self._is_leaving(connection):
                    return Detached(self.process_id)
            except OSError:
                return None
            if connection.fileno() in ready:
                silent_s = monotonic() + self.silence_s
                outcome = self._heard(connection, connection.receive())
        return outcome if isinstance(outcome, Exited) else None

    def _heard(self, connection: WebSocket, came: Iterable[Received]) -> Exited | Closed | None:
        """Handle received frames; return how the process or the connection ended."""
        for received in came:
            match received:
                case bytes():
                    self._print(received)
                case Closed():
                    return received
                case _:
                    if (exited := self._taken(received)) is not None:
                        return exited
                    if received.get("type") == "opened" and not self._is_sent(connection):
                        return Closed("nothing can be sent")
        return None

    def _is_leaving(self, connection: WebSocket) -> bool:
        """Send the input; return whether the user detached."""
        is_terminal = os.isatty(self.input_fd)
        typed = self._typed()
        if self._is_ended:
            # After a hangup there is no terminal any more; the end of a file is like Ctrl-D.
            self._unsent = b"" if is_terminal else END_OF_INPUT
        before, leave, _ = typed.partition(LEAVE) if is_terminal else (typed, b"", b"")
        self._unsent += before
        if self._unsent:
            connection.send(self._unsent)
            self._unsent = b""
        return bool(leave) or (self._is_ended and is_terminal)

    def _typed(self) -> bytes:
        """Read input, and record its end."""
        try:
            typed = os.read(self.input_fd, READ_BYTES)
        except OSError:
            typed = b""
        self._is_ended = not typed
        return typed

    def _is_sent(self, connection: WebSocket) -> bool:
        """Send the input that the previous connection did not send."""
        if self._is_ended and not os.isatty(self.input_fd):
            # Whether the end was received is unknown; a shell that received it has exited.
            self._unsent = self._unsent.removesuffix(END_OF_INPUT) + END_OF_INPUT
        try:
            if self._unsent:
                connection.send(self._unsent)
        except OSError:
            return False
        self._unsent = b""
        return True

    def _taken(self, message: dict[str, Any]) -> Exited | None:
        match message:
            case {"type": "opened", "process": {"id": process_id}, "cursor": cursor}:
                self.process_id, self.cursor = str(process_id), int(cursor)
            case {"type": "exited", "process": process}:
                return Exited(_code(process.get("exit") or {}))
            case {"type": "closed", "cursor": cursor}:
                self.cursor = int(cursor)
            case {"type": "problem", "detail": detail}:
                raise CliError(f"the terminal was closed: {detail}")
        return None

    def _print(self, data: bytes) -> None:
        self.cursor = (self.cursor or 0) + len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self.output_fd, view) :]

    def _note(self, text: str) -> None:
        """Print a line for the user, if this is a terminal."""
        if os.isatty(self.input_fd) and os.isatty(self.output_fd):
            os.write(self.output_fd, f"\r\n{text}\r\n".encode())

    def _tell_size(self, connection: WebSocket) -> None:
        size = self._size()
        if size is not None and size != self._told_size:
            self._told_size = size
            connection.tell(type="resize", rows=size.lines, columns=size.columns)

    def _size(self) -> os.terminal_size | None:
        try:
            size = os.get_terminal_size(self.input_fd)
        except OSError:
            return None
        return size if size.lines and size.columns else None


def _code(exit: dict[str, Any]) -> int:
    """Return the exit code as in a shell."""
    if name := exit.get("signal"):
        return SIGNALLED + signal.Signals[name].value
    code = exit.get("exit_code")
    return 1 if code is None else int(code)


@contextmanager
def _raw(fd: int) -> Iterator[None]:
    """Put a terminal into raw mode, so that Ctrl-C is sent too; other inputs are not changed."""
    if not os.isatty(fd):
        yield
        return
    before = termios.tcgetattr(fd)
    try:
        # Keep keystrokes that were typed ahead.
        tty.setraw(fd, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)


@contextmanager
def _resizes() -> Iterator[int]:
    """Yield a descriptor that becomes readable when the window size changes."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.signal(signal.SIGWINCH, lambda *_: os.write(writing, b"w"))
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
