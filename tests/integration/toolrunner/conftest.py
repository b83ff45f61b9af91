import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from support.session.row_sizes import FULL_SIZE, RowSizes
from support.toolrunner.node import Client, House, connected, node, running
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level
from toolrunner.spawner import PR_SET_CHILD_SUBREAPER, prctl


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("files")
    group.addoption("--names", type=int, default=None, help="names in one directory (1000000)")
    group.addoption("--line-mib", type=int, default=None, help="length of one line (1024)")
    group.addoption("--swaps", type=int, default=None, help="links swapped in a race (1000000)")


@pytest.fixture(scope="session", autouse=True)
def reaping() -> Iterator[None]:
    """Have whatever loses its parent come to this process, so that it is found as our own."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    yield
    prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture(autouse=True)
def reaped(reaping: None) -> Iterator[None]:
    """Take leave of those who came to this process and ended, so that no test finds another's."""
    _reap()
    yield
    _reap()


def _reap() -> None:
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return House.build(tmp_path_factory.mktemp("t"))


@pytest.fixture(params=(Level.NONE, *offered()[-1:]), ids=lambda level: str(level.word))
def each_house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    """A house without a sandbox, and one with the strongest that this machine has."""
    house = House.build(tmp_path_factory.mktemp("t"))
    return replace(house, sandbox_level=request.param.word)


@pytest.fixture
async def client(house: House) -> AsyncIterator[Client]:
    async with node(house), connected(house) as client:
        yield client


@pytest.fixture
def sizes(request: pytest.FixtureRequest) -> RowSizes:
    return FULL_SIZE if request.config.getoption("--full-size") else RowSizes()


@pytest.fixture
def marks() -> Iterator[list[str]]:
    """Words that a test puts into its command lines; none may be running at the end."""
    words: list[str] = []
    yield words
    assert [word for word in words if running(word)] == []
