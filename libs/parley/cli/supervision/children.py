"""Starts processes, waits for their exit, and ends them with their process groups."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from parley.cli.home.layout import Home
from parley.cli.home.log_files import open_log, tail
from parley.cli.stack.plan import ProcessSpec

LOG_TAIL_LINES = 20


class Child(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int:
        """Return its process id."""
        ...

    @property
    def started_at(self) -> float:
        """Return its start time, which identifies it together with the pid."""
        ...

    @property
    def exit_code(self) -> int | None:
        """Return its exit code, negative for a signal, or None while it runs."""
        ...

    async def ended(self) -> int:
        """Wait for its end and return its exit code."""
        ...

    def terminate(self) -> None:
        """Request it to end."""
        ...

    def kill(self) -> None:
        """Kill it and every process of its group."""
        ...


class Launcher(Protocol):
    """Starts processes."""

    def launch(self, spec: ProcessSpec) -> Child:
        """Start the process of `spec`."""
        ...


class ChildProcess:
    """A child of this process in a session of its own.

    Its exit is detected through a pidfd. Until it is reaped its pid, which is also its group's id,
    cannot be reused, so the rest of its group is killed before that.
    """

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        self._started = started
        self._ended = asyncio.Event()
        self._pidfd = os.pidfd_open(started.pid)
        self.pid = started.pid
        self.started_at = psutil.Process(started.pid).create_time()
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code once the process was reaped."""
        return self._started.returncode

    async def ended(self) -> int:
        """Wait for the end and return the exit code."""
        await self._ended.wait()
        return self._started.wait()

    def terminate(self) -> None:
        """Send SIGTERM to the process only: it ends its own children."""
        if not self._ended.is_set():
            self._started.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the group."""
        if not self._ended.is_set():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._started.wait()
        self._ended.set()


class LocalLauncher:
    """Starts processes on this machine; the output of each goes to its log file."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._log_began: dict[str, int] = {}

    def said(self, name: str) -> tuple[str, ...]:
        """Return the last lines that the process wrote since it was last started."""
        return tail(self._home.log_file(name), LOG_TAIL_LINES, since=self._log_began.get(name, 0))

    def launch(self, spec: ProcessSpec) -> ChildProcess:
        """Start the process; it inherits neither terminal, environment nor open files."""
        if spec.address.startswith("unix:"):
            # The socket of a killed predecessor is not needed any more.
            Path(spec.address.removeprefix("unix:")).unlink(missing_ok=True)
        with open_log(self._home.log_file(spec.name)) as log:
            self._log_began[spec.name] = log.seek(0, os.SEEK_END)
            started = subprocess.Popen(
                spec.argv,
                env=dict(spec.environment),
                cwd=Path("/"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return ChildProcess(started)
