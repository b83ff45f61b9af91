"""What holds for all tests: patience, the simulated seeds, what is told, and several workers."""

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from xdist import is_xdist_worker
from xdist.remote import Producer

from support.parallel_run import WholeFiles, end_leftovers, end_undisturbed, marks_of_workers
from support.told_results import keep_attacks, told_results

SEEDS = 1000

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    # Here, and not beside the simulation, so that every way to start the tests knows them.
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, default=None, help="simulate this seed alone")
    group.addoption("--seeds", type=int, default=SEEDS, help="how many seeds are simulated")
    parser.getgroup("toolrunner").addoption(
        "--full-size",
        action="store_true",
        help="rows about many commands and long stops at the size of the fault matrix",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Here as well: a process that gives its tests to workers reads no conftest but this.
    for title, lines in told_results(terminalreporter):
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    keep_attacks(report)
    return report


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles:
    return WholeFiles(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    if is_xdist_worker(session):
        end_undisturbed()
    try:
        yield
    finally:
        end_leftovers(marks_of_workers(session.config))
