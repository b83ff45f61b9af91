"""`parley workspace shell` at a real terminal, with a real shell at the other end."""

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

import pytest

from support.local_stack import LocalStack

pytestmark = pytest.mark.slow

NAME = "by-terminal"
SEEN_S_MAX = 30.0


class Window:
    """A terminal with the command in it, and all that it showed."""

    def __init__(self, ours: int, process: "subprocess.Popen[bytes]") -> None:
        self.ours = ours
        self.process = process
        self.shown = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def until(self, pattern: bytes) -> "re.Match[bytes]":
        """Read until it was shown."""
        deadline = monotonic() + SEEN_S_MAX
        while (found := re.search(pattern, self.shown)) is None:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - monotonic()))
            assert ready, (pattern, self.shown)
            self.shown += os.read(self.ours, 65536)
        return found

    def ended(self) -> int:
        return self.process.wait(SEEN_S_MAX)


@contextmanager
def window(stack: LocalStack, *words: str) -> Iterator[Window]:
    """Call `parley workspace shell` in a terminal; afterwards that is as it was."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(theirs)
    with subprocess.Popen(
        stack.command("workspace", "shell", *words),
        env=stack.variables(),
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


@pytest.fixture
def workspace(stack: LocalStack) -> Iterator[str]:
    made = stack.parley("workspace", "create", "scratch", "--name", NAME)
    assert made.returncode == 0, made.stderr
    yield NAME
    stack.parley("workspace", "rm", NAME)


def test_a_shell_is_typed_at_resized_left_and_come_back_to(
    stack: LocalStack, workspace: str
) -> None:
    with window(stack, workspace) as first:
        first.type("test -t 0 && echo tty-$((6*7)); stty size\n")
        first.until(rb"tty-42\r\n[^\n]*30 100\r\n")
        first.resize(31, 101)
        first.type("stty size\n")
        first.until(rb"31 101\r\n")
        first.type("trap 'echo caught' INT; cat\npurr\n")
        first.until(rb"purr\r\n[^\n]*purr\r\n")  # Once typed, and once by a program that runs.
        first.type("\x03")
        first.until(rb"caught\r\n")
        first.type("\x1d")
        process_id = first.until(rb"--attach (\S+)")[1].decode()
        assert first.ended() == 0
    with window(stack, workspace, "--attach", process_id) as again:
        again.until(rb"tty-42\r\n")
        again.type("echo still-$((2+1)); exit 7\n")
        again.until(rb"still-3\r\n")
        assert again.ended() == 7


def test_a_script_is_given_to_a_shell(stack: LocalStack, workspace: str) -> None:
    ran = subprocess.run(
        stack.command("workspace", "shell", workspace),
        env=stack.variables(),
        input=b"echo from-$((4+1)); exit 3\n",
        capture_output=True,
        timeout=SEEN_S_MAX,
        check=False,
    )
    assert ran.returncode == 3, ran.stderr
    assert b"from-5\r\n" in ran.stdout


def test_a_stopped_workspace_is_started_for_a_shell(stack: LocalStack, workspace: str) -> None:
    assert stack.parley("workspace", "stop", workspace).returncode == 0
    ran = stack.parley("workspace", "shell", workspace)
    assert ran.returncode == 0, ran.stderr
    assert f"Starting {workspace}." in ran.stderr
