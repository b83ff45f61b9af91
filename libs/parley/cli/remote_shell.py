"""A terminal at the other end of a connection: what is typed goes there, what is printed comes."""

import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

from parley.cli.api import ApiRefused, Unreachable
from parley.cli.errors import CliError
from parley.cli.server import Server
from parley.cli.websocket import Closed, WebSocket

#: Ctrl-], as telnet has it: no program needs it, and it is one key.
LEAVE: Final = b"\x1d"
END_OF_INPUT: Final = b"\x04"
READ_BYTES: Final = 4096
#: How long a lost connection is opened again, and how often it is tried.
RETURN_S: Final = 30.0
PAUSE_S: Final = 0.5
SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True)
class Exited:
    """The process ended, with the exit code that a shell would give it."""

    code: int


@dataclass(frozen=True, slots=True)
class Left:
    """Somebody left a process that goes on."""

    process_id: str


@dataclass
class RemoteShell:
    """A process with a terminal in a workspace, and this command's own terminal.

    Attributes:
        path: Of the workspace.
        pause: Waits that many seconds.
        process_id: The process to go on with; empty for a new shell.
        workdir: Where a new shell starts.
        cursor: How much of its output was seen; None before the first connection.
    """

    server: Server
    path: str
    pause: Callable[[float], object]
    process_id: str = ""
    workdir: str = ""
    input_fd: int = 0
    output_fd: int = 1
    cursor: int | None = None
    _is_ended: bool = field(default=False, init=False)
    _told_size: os.terminal_size | None = field(default=None, init=False)

    def run(self) -> Exited | Left:
        """Be at the terminal until the process ends or is left.

        Raises:
            CliError: It cannot be attached to, or is lost.
        """
        with _raw(self.input_fd), _resizes() as resized_fd:
            while True:
                connection = self._connected()
                try:
                    outcome = self._spoken(connection, resized_fd)
                finally:
                    connection.leave()
                if outcome is not None:
                    return outcome

    def _connected(self) -> WebSocket:
        """Connect; what was connected before is tried for a while."""
        is_first = self.cursor is None
        until_s = monotonic() + RETURN_S
        while True:
            try:
                return WebSocket.opened(self.server, self._target())
            except (Unreachable, ApiRefused) as error:
                is_final = isinstance(error, ApiRefused) and error.status < 500
                if is_first or is_final or monotonic() >= until_s:
                    raise
            self.pause(PAUSE_S)

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

    def _spoken(self, connection: WebSocket, resized_fd: int) -> Exited | Left | None:
        """Pass everything on; return None if the connection is lost."""
        while True:
            typed = [] if self._is_ended else [self.input_fd]
            ready, _, _ = select.select([connection.fileno(), resized_fd, *typed], [], [])
            try:
                if resized_fd in ready:
                    os.read(resized_fd, READ_BYTES)
                # Also when something was typed, which may have been read before the signal came.
                self._tell_size(connection)
                if self.input_fd in ready and self._is_leaving(connection):
                    return Left(self.process_id)
            except OSError:
                return None
            if connection.fileno() not in ready:
                continue
            for received in connection.receive():
                match received:
                    case bytes():
                        self._print(received)
                    case Closed():
                        return None
                    case _:
                        if (exited := self._taken(received)) is not None:
                            return exited

    def _is_leaving(self, connection: WebSocket) -> bool:
        """Pass on what was typed; return whether that was the wish to leave."""
        is_terminal = os.isatty(self.input_fd)
        try:
            typed = os.read(self.input_fd, READ_BYTES)
        except OSError:
            typed = b""
        if not typed:
            # Somebody who hung up cannot be at a terminal; a file that ends is like Ctrl-D.
            self._is_ended = True
            if not is_terminal:
                connection.send(END_OF_INPUT)
            return is_terminal
        before, leave, _ = typed.partition(LEAVE) if is_terminal else (typed, b"", b"")
        if before:
            connection.send(before)
        return bool(leave)

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
    """Return the exit code that a shell would give."""
    if name := exit.get("signal"):
        return SIGNALLED + signal.Signals[name].value
    code = exit.get("exit_code")
    return 1 if code is None else int(code)


@contextmanager
def _raw(fd: int) -> Iterator[None]:
    """Have a terminal hand over every key as it is, Ctrl-C too; what is none is left alone."""
    if not os.isatty(fd):
        yield
        return
    before = termios.tcgetattr(fd)
    try:
        # What was typed ahead is not thrown away.
        tty.setraw(fd, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)


@contextmanager
def _resizes() -> Iterator[int]:
    """Give a descriptor that can be read when the window has another size."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.signal(signal.SIGWINCH, lambda *_: os.write(writing, b"w"))
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
