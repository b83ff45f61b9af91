import errno
import io
import json
import os

import pytest

from parley.cli.background import Outcome, PipeReport
from parley.cli.progress import TextProgress


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
    report.confide("token")
    report.end(Outcome(0))
    report.confide("too late")
    assert capsys.readouterr().out == "ready\n"
    with os.fdopen(reading) as pipe:
        heard = [json.loads(line) for line in pipe]
    assert heard == [{"line": "ready"}, {"line": "token"}, {"exit_code": 0, "lines": []}]
