"""A stack started from a shell that allows few open files, as login shells do."""

import json
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from parley.process.open_files import LIMIT_MAX
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

#: Fewer than the connections that the load test makes; PostgreSQL needs most of them.
OPEN_FILES = 256
CHATS = 280


@contextmanager
def few_open_files() -> Iterator[None]:
    """Have whatever is started inside the context begin with a low limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def shell_stack(tmp_path: Path) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path)
    with few_open_files():
        started = stack.up()
        assert started.returncode == 0, started.stdout + started.stderr
        try:
            yield stack
        finally:
            stack.parley("down")


def open_files_of(stack: LocalStack, service: str) -> set[tuple[int, int]]:
    processes = stack.status()["processes"]
    return {
        resource.prlimit(each["pid"], resource.RLIMIT_NOFILE)
        for each in processes
        if each["service"] == service
    }


def test_more_chats_than_the_shell_allows_open_files(shell_stack: LocalStack) -> None:
    options = ("--chats", str(CHATS), "--turns", "1", "--deltas", "3", "--json")
    ran: subprocess.CompletedProcess[str] = shell_stack.parley("scaletest", *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    assert (report["turns_completed"], report["chats_failed"]) == (CHATS, 0)
    for service in ("gateway", "chatd", "toolrunner", "mcpgateway"):
        ((soft, hard),) = open_files_of(shell_stack, service)
        assert soft == min(hard, LIMIT_MAX)
    told = json.loads(shell_stack.parley("doctor", "--json").stdout)["findings"]
    (found,) = [each for each in told if each["name"] == "open files"]
    ((limit, _),) = open_files_of(shell_stack, "gateway")
    assert found["detail"].startswith(f"{limit} for a service")
    # Their limit is that of the start and of a setting, which this command does not know.
    assert "commands" not in found["detail"]
