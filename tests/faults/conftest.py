"""One stack of three chatd for all faults; each test leaves it whole again."""

from collections.abc import AsyncIterator, Iterator

import pytest

from support.faulty_stack import FaultyStack, connect_to
from support.local_stack import LocalStack


@pytest.fixture(scope="session")
def faulty_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("faults"))
    started = stack.up("--chatd", "3")
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


@pytest.fixture
async def faulty(faulty_session: LocalStack) -> AsyncIterator[FaultyStack]:
    connection = await connect_to(faulty_session)
    yield FaultyStack(faulty_session, connection)
    await connection.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--repeats", type=int, default=1, help="how often each fault is repeated (200 in full)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "repeat" in metafunc.fixturenames:
        metafunc.parametrize("repeat", range(metafunc.config.getoption("--repeats")))
