"""One real stack for everything here that needs a running one."""

import subprocess
from collections.abc import Iterator

import psutil
import pytest

from support.local_stack import LocalStack


@pytest.fixture(scope="session")
def session_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    home = tmp_path_factory.mktemp("home")
    stack = LocalStack.at(home, PARLEY_ENVIRONMENT="development")
    yield stack
    stopped = stack.parley("down")
    assert stopped.returncode == 0, stopped.stderr
    _, left = psutil.wait_procs(stack.strangers(), timeout=5)
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
