"""What holds for all tests: patience, the simulated seeds, what is told, and several workers."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist import is_xdist_worker
from xdist.remote import Producer

from parley.process.signals import end_with_parent
from support.net.browser_program import installed_browser
from support.session import second_chance
from support.session.case_tables import take_cases, with_taken
from support.session.examples import BRIEF, FULL_SIZE, PLAIN
from support.session.file_shares import OwnShares, is_divided, share_of_worker
from support.session.leftover_processes import end_leftovers
from support.session.parallel_run import (
    WholeFiles,
    end_undisturbed,
    marks_of_process,
    marks_of_workers,
)
from support.session.run_guard import end_with, start_guard
from support.session.sandbox_levels import keep_levels
from support.session.shared_programs import stop_left
from support.session.stuck_tests import StuckTests
from support.session.told_results import keep_attacks, told_results

SEEDS = 1000

#: The test files of this worker, if the run divides them.
SHARE = pytest.StashKey[frozenset[Path] | None]()

for name, examples in (("brief", BRIEF), ("plain", PLAIN), ("full size", FULL_SIZE)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    # Here, and not beside the simulation, so that every way to start the tests knows them.
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, default=None, help="simulate this seed alone")
    group.addoption("--seeds", type=int, default=SEEDS, help="how many seeds are simulated")
    parser.addoption(
        "--second-chance",
        type=int,
        metavar="ALLOWED",
        help="these tests failed beside others: tell which pass now, and fail if more do",
    )
    parser.addoption(
        "--end-with",
        action="append",
        type=int,
        metavar="PID",
        help="end the run when this process ends",
    )
    parser.addoption(
        "--end-stuck",
        type=float,
        metavar="SECONDS",
        help="end the worker whose test takes longer, because --timeout could not interrupt it",
    )
    parser.addoption(
        "--need-browser",
        action="store_true",
        help="refuse to run without a browser, in place of skipping the tests that need one",
    )
    parser.addoption(
        "--brief",
        action="store_true",
        help="properties with a tenth of the examples, for a run while one writes code",
    )
    parser.addoption(
        "--page-report",
        metavar="DIRECTORY",
        help="write what the scenarios of the page showed into this directory of documents",
    )
    parser.getgroup("toolrunner").addoption(
        "--full-size",
        action="store_true",
        help="rows about many commands and long stops at the size of the fault matrix, "
        "and properties with four times the examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Before any test is imported: decorators read the profile.
    size = "brief" if config.getoption("--brief") else "plain"
    settings.load_profile("full size" if config.getoption("--full-size") else size)
    # Jobs of a shell in the background ignore Ctrl-C, and so would every program that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--need-browser") and installed_browser() is None:
        raise pytest.UsageError("no browser is installed, and --need-browser was given")
    if config.getoption("--end-stuck"):
        config.pluginmanager.register(StuckTests(config.getoption("--end-stuck")))
    if config.getoption("--end-with"):
        end_with(config.getoption("--end-with"))
    if hasattr(config, "workerinput"):
        # A worker whose run was killed would go on for a while.
        end_with_parent(os.getppid())
    config.stash[SHARE] = share_of_worker(config)
    if is_divided(config):
        # Another worker would read another share than that of the one which crashed.
        config.option.maxworkerrestart = "0"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    share = config.stash.get(SHARE, None)
    if share is None or collection_path.suffix != ".py" or collection_path in share:
        return None
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # All that is imported stays, so looking for what can go is of no use.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    yield
    take_cases(metafunc)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    return with_taken(collector, (yield))


def pytest_sessionstart(session: pytest.Session) -> None:
    if not session.config.getoption("numprocesses", None):
        start_guard(marks_of_process(session.config))


def pytest_collection_finish() -> None:
    # Thousands of tests and all that they import stay until the end: the collector need not look
    # at them again and again to find what a test left.
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Here as well: a process that gives its tests to workers reads no conftest but this.
    sections = list(told_results(terminalreporter))
    allowed = terminalreporter.config.getoption("--second-chance")
    if allowed is not None:
        lines = list(second_chance.told(terminalreporter.stats, allowed))
        sections.append(("second chance", lines))
    for title, lines in sections:
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    keep_attacks(report)
    keep_levels(item, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    yield
    stop_left(item.config.stash, None if nextitem is None else nextitem.path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles | OwnShares:
    return OwnShares(config, log) if is_divided(config) else WholeFiles(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    if is_xdist_worker(session):
        end_undisturbed()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = {} if reporter is None else reporter.stats
    allowed = session.config.getoption("--second-chance")
    if allowed is not None and len(second_chance.passed_alone(stats)) > allowed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    try:
        yield
    finally:
        end_leftovers(marks_of_workers(session.config))
