"""Options of the simulation: which seeds it runs."""

import pytest

SEEDS = 500


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="simulate this seed alone")
    parser.addoption("--seeds", type=int, default=SEEDS, help="how many seeds are simulated")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    # The defaults are repeated for runs that did not name this directory: they read it too late.
    seed = request.config.getoption("--seed", None)
    if seed is not None:
        return range(seed, seed + 1)
    return range(request.config.getoption("--seeds", SEEDS))
