"""`parley workspace shell` at a real terminal, with a real shell at the other end."""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from support.host.conditions import until
from support.net.cutting_proxy import cutting
from support.stack import terminal_window
from support.stack.local_stack import LocalStack
from support.stack.terminal_window import Window

pytestmark = pytest.mark.slow

NAME = "by-terminal"
SEEN_S_MAX = 30.0


def window(stack: LocalStack, *words: str, **variables: str) -> AbstractContextManager[Window]:
    """Call `parley workspace shell` in a terminal."""
    return terminal_window.window(stack, "workspace", "shell", *words, **variables)


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


def test_a_lost_connection_goes_on_where_it_was(stack: LocalStack, workspace: str) -> None:
    key = stack.home.api_key_file.read_text().strip()
    with (
        cutting(int(stack.http.rpartition(":")[2])) as (port, cut),
        window(
            stack, workspace, PARLEY_URL=f"http://127.0.0.1:{port}", PARLEY_API_KEY=key
        ) as shell,
    ):
        for number in (1, 2, 3):
            # What is printed while nobody is connected is shown afterwards, and everything once.
            words = f"echo up-{number}; sleep 1; seq {number}1 {number}5; echo over-{number}\n"
            shell.type(words)
            shell.until(rb"\nup-%d\r\n" % number)
            cut()
            shell.until(rb"\nover-%d\r\n" % number)
        shell.type("exit 9\n")
        assert shell.ended() == 9
    shown = [line for line in shell.shown.split(b"\r\n") if line.isdigit()]
    assert shown == [b"%d%d" % (number, each) for number in (1, 2, 3) for each in range(1, 6)]


def test_a_shell_that_printed_more_than_is_kept_is_come_back_to(
    stack: LocalStack, workspace: str
) -> None:
    with window(stack, workspace) as first:
        first.type("sleep 1; seq 3000000; sleep 7511\n")
        first.until(rb"sleep 7511\r\n")
        first.type("\x1d")
        process_id = first.until(rb"--attach (\S+)")[1].decode()
        assert first.ended() == 0
    until(lambda: stack.is_running("7511"), "the end of its output", within_s=SEEN_S_MAX)
    with window(stack, workspace, "--attach", process_id) as again:
        again.until(rb"\n2999999\r\n3000000\r\n")
        again.type("\x03")
        again.until(rb"\n3000000\r\n[^$]*\$ ")
        again.type("exit 4\n")
        assert again.ended() == 4
    assert b"[Some output is no longer there.]" in again.shown


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
