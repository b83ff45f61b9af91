"""Which seeds the simulation runs, and what is told of them."""

from collections.abc import Callable

import pytest

from support.simulation.batch import Report

SIMULATED = pytest.StashKey[Report]()


@pytest.fixture
def seeds(pytestconfig: pytest.Config) -> range:
    seed = pytestconfig.getoption("--seed")
    if seed is not None:
        return range(seed, seed + 1)
    return range(pytestconfig.getoption("--seeds"))


@pytest.fixture
def tell(pytestconfig: pytest.Config) -> Callable[[Report], None]:
    """Return what has a report told at the end of the tests."""

    def keep(report: Report) -> None:
        pytestconfig.stash[SIMULATED] = report

    return keep


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    report = config.stash.get(SIMULATED, None)
    if report is not None:
        terminalreporter.section("simulation")
        terminalreporter.write_line(str(report))
