"""One real stack for everything here that needs a running one, and points to hold its chatd at."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.faults.points import FaultPoints
from support.session.shared_programs import stop_when_left
from support.stack.local_stack import LocalStack


@pytest.fixture(scope="session")
def session_stack(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[LocalStack]:
    home = tmp_path_factory.mktemp("home")
    armed = tmp_path_factory.mktemp("points") / "armed"
    armed.mkdir()
    stack = LocalStack.at(
        home,
        PARLEY_ENVIRONMENT="development",
        CHATD_FAULTPOINTS_DIRECTORY=str(armed),
        TOOLRUNNER_REMOVED_KEPT_S="5",
    )
    stop_when_left(pytestconfig.stash, Path(__file__).parent, lambda: stack.parley("down"))
    yield stack
    stopped = stack.parley("down")
    assert stopped.returncode == 0, stopped.stderr
    _, left = psutil.wait_procs(stack.strangers(), timeout=30)
    assert left == []


@pytest.fixture(scope="session")
def first_start(session_stack: LocalStack) -> "subprocess.CompletedProcess[str]":
    """Start the stack, and give what that start said."""
    return session_stack.up()


@pytest.fixture
def stack(session_stack: LocalStack, first_start: "subprocess.CompletedProcess[str]") -> LocalStack:
    """Give the stack, running, whatever the test before did to it."""
    session_stack.ensure_up()
    return session_stack


@pytest.fixture
def points(stack: LocalStack) -> Iterator[FaultPoints]:
    """Give the points of the stack's chatd: who stands at one waits, so a test need not race."""
    points = FaultPoints(Path(stack.environment["CHATD_FAULTPOINTS_DIRECTORY"]))
    yield points
    points.disarm()
    points.forget()
