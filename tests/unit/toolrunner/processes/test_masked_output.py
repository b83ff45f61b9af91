"""Secrets that a process prints are masked in its output, however it is cut."""

import asyncio
import base64
import os
from collections.abc import Callable, Coroutine
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVarTuple

import pytest

from parley.clock import FakeClock
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.primitives.domain import ChatId, ProcessId, WorkspaceId
from toolrunner.processes.live_process import HOLD_S, TURN_BYTES, LiveProcess, Pipes
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import FinishedLog, OutputLog
from toolrunner.spawner.client.spawner import Launched

Ts = TypeVarTuple("Ts")

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


@pytest.mark.parametrize(
    ("secret", "shown", "kept"),
    [
        (f"{SECRET}\n", f'{{"token": "{SECRET}"}}', f'{{"token": "{STARS}"}}'),
        (f"{SECRET}\n", f"TOKEN={SECRET}\nA=b\n", f"TOKEN={STARS}\nA=b\n"),
        (f" {SECRET} \r\n", f"x-{SECRET}-y", f"x-{STARS}-y"),
        (f"{SECRET}\n", base64.b64encode(f"{SECRET}\n".encode()).decode(), "*" * 28),
        ("short\n\n\n", "short\n\n\n", "*" * 8),
    ],
)
def test_a_secret_is_masked_without_the_white_space_around_it(
    tmp_path: Path, secret: str, shown: str, kept: str
) -> None:
    assert printed(tmp_path, secret, shown) == kept


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


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time the test sets; it counts timers."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.timers = 0

    def time(self) -> float:
        return self.now_s

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when, callback, *args, context=context)


def run_stepped(work: Callable[[SteppedLoop], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a loop whose time it sets."""
    loop = SteppedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work(loop))


async def iterate(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop call what is readable and due, several times."""
    for _ in range(5):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


def running(directory: Path) -> tuple[LiveProcess, int, Pipes]:
    """Return a process with a secret, its end of the output, and what reads the other."""
    pipes = Pipes()
    live = LiveProcess(RECORD, KeptOutput(OutputLog(directory, "p", 1000)), 0.0, pipes)
    live.output.hide([SECRET])
    output_fd, writing = os.pipe()
    live.run(Launched(pid=1, output_fd=output_fd))
    return live, writing, pipes


def test_one_timer_waits_for_the_rest_of_a_secret_however_often_one_may_begin(
    tmp_path: Path,
) -> None:
    async def work(loop: SteppedLoop) -> None:
        live, writing, pipes = running(tmp_path)
        for _ in range(50):
            os.write(writing, b"s")
            live.read_rest()
        assert (loop.timers, live.output.total_bytes) == (1, 49)
        loop.now_s += HOLD_S
        await iterate(loop)
        assert (loop.timers, live.output.total_bytes) == (1, 50)
        live.close()
        pipes.close()
        os.close(writing)

    run_stepped(work)


def test_the_beginning_of_a_secret_is_kept_as_long_after_the_last_output(tmp_path: Path) -> None:
    async def work(loop: SteppedLoop) -> None:
        live, writing, pipes = running(tmp_path)
        os.write(writing, SECRET[:3].encode())
        live.read_rest()
        loop.now_s += HOLD_S * 0.9
        os.write(writing, SECRET[3:6].encode())
        live.read_rest()
        loop.now_s += HOLD_S * 0.9
        await iterate(loop)
        assert live.output.total_bytes == 0
        os.write(writing, SECRET[6:].encode())
        live.read_rest()
        assert live.output.read(0, live.output.total_bytes).decode() == STARS
        live.close()
        pipes.close()
        os.close(writing)

    run_stepped(work)


def test_an_output_that_pauses_is_not_read_for_the_rest_of_a_secret(tmp_path: Path) -> None:
    async def work(loop: SteppedLoop) -> None:
        live, writing, pipes = running(tmp_path)
        os.write(writing, b"s")
        await iterate(loop)
        # The quota is used up shortly before the timer is due.
        loop.now_s += HOLD_S * 0.9
        piece = b"s" * 65536
        while live.output.total_bytes < TURN_BYTES:
            os.write(writing, piece)
            await iterate(loop)
        os.write(writing, piece)
        read = live.output.total_bytes
        loop.now_s += HOLD_S * 0.1
        await iterate(loop)
        assert live.output.total_bytes == read
        loop.now_s += HOLD_S
        await iterate(loop)
        assert live.output.total_bytes == read + len(piece)
        live.close()
        pipes.close()
        os.close(writing)

    run_stepped(work)
