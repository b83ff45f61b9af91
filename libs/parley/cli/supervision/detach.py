"""`up --detach`: a supervisor in the background that reports to the command that started it.

The report is one JSON object per line over a pipe: lines for the user, and finally an exit code.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from parley.cli.errors import CliError
from parley.cli.home.layout import Home
from parley.cli.home.log_files import open_log, tail
from parley.cli.progress import Progress, TextProgress

TAIL_LINES = 20
PROGRAM = (sys.executable, "-m", "parley.cli")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the start, as reported by the background process."""

    exit_code: int
    lines: tuple[str, ...] = ()


class PipeReport:
    """The background side: reports to the waiting command while it waits."""

    def __init__(self, descriptor: int) -> None:
        self._pipe: int | None = descriptor
        os.set_inheritable(descriptor, False)

    def say(self, line: str) -> None:
        """Send one line, and write it to the supervisor's log."""
        TextProgress(sys.stdout).say(line)
        self._send({"line": line})

    def say_secret(self, line: str) -> None:
        """Send one line, and write it nowhere else."""
        self._send({"line": line})

    def end(self, outcome: Outcome) -> None:
        """Send the outcome; later lines go to the log only."""
        self._send({"exit_code": outcome.exit_code, "lines": outcome.lines})
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _send(self, message: Mapping[str, object]) -> None:
        if self._pipe is None:
            return
        try:
            os.write(self._pipe, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            os.close(self._pipe)
            self._pipe = None


def start_in_background(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    home: Home,
    progress: Progress,
    program: Sequence[str] = PROGRAM,
) -> Outcome:
    """Start `parley ARGUMENTS --report-fd N` in the background and wait for its outcome.

    Raises:
        CliError: it ended without reporting one.
    """
    reading, writing = os.pipe()
    command = [*program, *arguments, "--report-fd", str(writing)]
    with open_log(home.supervisor_log) as log:
        began = log.seek(0, os.SEEK_END)
        started = _start(command, environment, log=log, report=writing)
    os.close(writing)
    try:
        outcome = _heard(reading, progress)
    except KeyboardInterrupt:
        started.send_signal(signal.SIGTERM)
        started.wait()
        raise
    if outcome is not None and outcome.exit_code == 0:
        # From here on it runs on its own; no process waits for its end.
        started.returncode = 0
        return outcome
    # It still stops the processes it had started.
    started.wait()
    if outcome is None:
        said = tail(home.supervisor_log, TAIL_LINES, since=began)
        raise CliError("\n".join((f"the supervisor ended early; see {home.supervisor_log}", *said)))
    return outcome


def _start(
    command: Sequence[str], environment: Mapping[str, str], *, log: BinaryIO, report: int
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=(report,),
        start_new_session=True,
    )


def _heard(reading: int, progress: Progress) -> Outcome | None:
    with os.fdopen(reading) as report:
        for text in report:
            message = json.loads(text)
            if "exit_code" in message:
                return Outcome(message["exit_code"], tuple(message["lines"]))
            progress.say(message["line"])
    return None
