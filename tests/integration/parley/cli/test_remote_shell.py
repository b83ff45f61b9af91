"""A shell over connections that break: gone on with at its cursor, or left."""

import os
import threading
import tty
from collections.abc import Callable, Iterator

import pytest

from parley.cli.workspaces.terminal import GAP, LOST, Detached, Exited, RemoteShell
from support.cli.fake_terminals import FakeTerminals, Seat

PATH = "/api/v1/workspaces/w"
PAUSE = threading.Event().wait


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Input to read and to write, output to read and to write."""
    fds = (*os.pipe(), *os.pipe())
    yield fds
    for fd in fds:
        os.close(fd)


@pytest.fixture
def window() -> Iterator[tuple[int, int]]:
    """Our side of a terminal, and that of the command."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def prints(cursor: int, data: bytes, wanted: bytes = b"") -> Callable[[Seat], None]:
    """Open at a cursor, print, and break off once something was typed."""

    def act(seat: Seat) -> None:
        seat.opened(cursor)
        seat.print(data)
        if wanted:
            seat.heard(wanted)

    return act


def ends(cursor: int, code: int) -> Callable[[Seat], None]:
    def act(seat: Seat) -> None:
        seat.opened(cursor)
        seat.exited(code)
        seat.heard()

    return act


def falls_silent(seat: Seat) -> None:
    seat.opened(0)
    seat.print(b"hello")
    seat.heard()


def test_a_lost_shell_goes_on_at_its_cursor(pipes: tuple[int, int, int, int]) -> None:
    typed, typing, shown, showing = pipes
    os.write(typing, b"ls\n")
    with FakeTerminals.serving(prints(0, b"hello", b"ls\n"), ends(5, 7)) as terminals:
        shell = RemoteShell(
            terminals.server, PATH, PAUSE, input_fd=typed, output_fd=showing, workdir="d"
        )
        assert shell.run() == Exited(7)
    assert [seat.target for seat in terminals.seats] == [
        f"{PATH}/terminal?workdir=d",
        f"{PATH}/processes/p/terminal?cursor=5",
    ]
    assert os.read(shown, 100) == b"hello"


def test_a_connection_that_gives_no_sign_of_life_is_opened_again(
    pipes: tuple[int, int, int, int],
) -> None:
    typed, _, _, showing = pipes
    with FakeTerminals.serving(falls_silent, ends(5, 0)) as terminals:
        shell = RemoteShell(
            terminals.server, PATH, PAUSE, input_fd=typed, output_fd=showing, silence_s=0.5
        )
        assert shell.run() == Exited(0)
    assert terminals.seats[1].target.endswith("cursor=5")


def test_the_end_of_a_script_is_told_again_to_the_next_connection(
    pipes: tuple[int, int, int, int],
) -> None:
    _, _, _, showing = pipes
    script = os.open("/dev/null", os.O_RDONLY)

    def hears_the_end(seat: Seat) -> None:
        seat.opened(0)
        seat.heard(b"\x04")
        seat.exited(3)
        seat.heard()

    with FakeTerminals.serving(prints(0, b"", b"\x04"), hears_the_end) as terminals:
        shell = RemoteShell(terminals.server, PATH, PAUSE, input_fd=script, output_fd=showing)
        assert shell.run() == Exited(3)
    os.close(script)


def test_output_that_is_gone_is_passed_over_and_that_is_told(window: tuple[int, int]) -> None:
    ours, theirs = window

    def is_gone(seat: Seat) -> None:
        seat.refused(410, code="OUTPUT_GONE", oldest_cursor="100")

    with FakeTerminals.serving(is_gone, ends(100, 0)) as terminals:
        shell = RemoteShell(
            terminals.server, PATH, PAUSE, process_id="p", input_fd=theirs, output_fd=theirs
        )
        assert shell.run() == Exited(0)
    targets = [seat.target.rpartition("cursor=")[2] for seat in terminals.seats]
    assert targets == ["0", "100"]
    assert GAP.encode() in os.read(ours, 1000)


def test_who_waits_for_a_lost_connection_can_leave(window: tuple[int, int]) -> None:
    ours, theirs = window

    def leave() -> None:
        """Somebody at the keyboard, once they see what happened."""
        seen = b""
        while LOST.encode() not in seen:
            seen += os.read(ours, 1000)
        os.write(ours, b"\x1d")

    os.write(ours, b"x")
    with FakeTerminals.serving(prints(0, b"hello", b"x")) as terminals:
        shell = RemoteShell(
            terminals.server, PATH, PAUSE, input_fd=theirs, output_fd=theirs, cursor=0
        )
        leaving = threading.Thread(target=leave)
        leaving.start()
        assert shell.run() == Detached("p")
        leaving.join()
