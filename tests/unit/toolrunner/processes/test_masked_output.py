"""Secrets that a process prints are masked in its output, however it is cut."""

import asyncio
import base64
import os
from pathlib import Path

import pytest

from parley.clock import FakeClock
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.primitives.domain import ChatId, ProcessId, WorkspaceId
from toolrunner.processes.live_process import LiveProcess, Pipes
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import FinishedLog, OutputLog
from toolrunner.spawner.client.spawner import Launched

SECRET = "swordfish-0123456789"
STARS = "*" * len(SECRET)
RECORD = ProcessRecord(
    process_id=ProcessId("p"),
    workspace_id=WorkspaceId("w"),
    chat_id=ChatId("c"),
    request_id="r",
    command="env",
    workdir="/",
    is_background=False,
    state=ProcessState.STARTING,
    started_at=FakeClock().now(),
)


def printed(directory: Path, secret: str, *pieces: str) -> str:
    """Return what is kept of pieces that are printed one after another; log and memory agree."""
    output = KeptOutput(OutputLog(directory, "p", 1_000_000))
    output.hide([secret])
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    for piece in pieces:
        os.write(writing, piece.encode())
        assert output.take(reading)
    os.close(writing)
    while output.take(reading):
        pass
    os.close(reading)
    output.close()
    kept = output.read(0, output.total_bytes)
    assert FinishedLog(directory, "p").read(0, output.total_bytes) == kept
    return kept.decode()


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ((f"TOKEN={SECRET}\n",), f"TOKEN={STARS}\n"),
        ((f"a {SECRET[:5]}", f"{SECRET[5:]} b"), f"a {STARS} b"),
        (tuple(SECRET), STARS),
        ((SECRET[:-1],), SECRET[:-1]),
        (("nothing to hide",), "nothing to hide"),
        (("",), ""),
    ],
)
def test_a_secret_is_masked_in_whatever_pieces_it_is_printed(
    tmp_path: Path, pieces: tuple[str, ...], kept: str
) -> None:
    assert printed(tmp_path, SECRET, *filter(None, pieces)) == kept


def test_a_secret_is_masked_as_base64_and_with_line_ends_of_a_terminal(tmp_path: Path) -> None:
    encoded = base64.b64encode(SECRET.encode()).decode()
    (tmp_path / "other").mkdir()

    assert printed(tmp_path, SECRET, encoded) == "*" * len(encoded)
    assert printed(tmp_path / "other", "line one\nline two", "line one\r\nline two") == "*" * 18


async def test_the_end_of_an_output_waits_a_moment_only_for_the_rest_of_a_secret(
    tmp_path: Path,
) -> None:
    pipes, shown = Pipes(), "Your name: " + SECRET[:3]
    live = LiveProcess(RECORD, KeptOutput(OutputLog(tmp_path, "p", 1000)), 0.0, pipes)
    live.output.hide([SECRET])
    output_fd, writing = os.pipe()
    live.run(Launched(pid=1, output_fd=output_fd))
    os.write(writing, shown.encode())
    async with asyncio.timeout(10):
        while live.output.total_bytes < len(shown):
            await live.output_grew.wait()
    live.close()
    pipes.close()
    os.close(writing)

    assert live.output.read(0, live.output.total_bytes).decode() == shown
