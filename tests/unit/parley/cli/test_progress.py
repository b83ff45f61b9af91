import errno
import io
import json
import os

import pytest

from parley.cli.progress import RunningLine, TextProgress
from parley.cli.supervision.detach import Outcome, PipeReport


class FullDisk(io.StringIO):
    """A stream to a file for which there is no room."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_line_that_cannot_be_written_stops_nothing() -> None:
    TextProgress(FullDisk()).say("hello")


def test_what_is_confided_goes_through_the_pipe_and_not_into_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reading, writing = os.pipe()
    report = PipeReport(writing)
    report.say("ready")
    report.say_secret("token")
    report.end(Outcome(0))
    report.say_secret("too late")
    assert capsys.readouterr().out == "ready\n"
    with os.fdopen(reading) as pipe:
        heard = [json.loads(line) for line in pipe]
    assert heard == [{"line": "ready"}, {"line": "token"}, {"exit_code": 0, "lines": []}]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_running_line_is_written_over_and_leaves_nothing() -> None:
    terminal = Terminal()
    line = RunningLine(terminal)
    line.show("long line")
    line.show("short")
    line.clear()
    assert terminal.getvalue() == "\rlong line\rshort    \r     \r"


def test_a_running_line_is_shown_on_terminals_only() -> None:
    stream = io.StringIO()
    RunningLine(stream).show("line")
    RunningLine(stream).clear()
    assert stream.getvalue() == ""
