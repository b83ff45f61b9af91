"""What holds for all tests: a slow machine is no failure; and which seeds are simulated."""

import pytest
from hypothesis import HealthCheck, settings

SEEDS = 1000

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    # Here, and not beside the simulation, so that every way to start the tests knows them.
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, default=None, help="simulate this seed alone")
    group.addoption("--seeds", type=int, default=SEEDS, help="how many seeds are simulated")
