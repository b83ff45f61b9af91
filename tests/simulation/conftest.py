"""Which seeds the simulation runs, and what is told of them."""

from collections.abc import Callable

import pytest

from support.session.told_results import SIMULATION
from support.simulation.batch import Report


@pytest.fixture
def seeds(pytestconfig: pytest.Config) -> range:
    seed = pytestconfig.getoption("--seed")
    if seed is not None:
        return range(seed, seed + 1)
    return range(pytestconfig.getoption("--seeds"))


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[Report], None]:
    """Return what has a report told at the end of the tests."""
    return lambda report: record_property(SIMULATION, str(report))
