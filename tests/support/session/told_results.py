"""What tests tell at the end of a run: kept in their reports, so any process may have run them."""

import re
from collections.abc import Iterator

import pytest

from support.faults.report import FaultReport, RowReport
from support.session.case_tables import CASES
from support.session.sandbox_levels import RAN, SKIPPED, level_lines

FAULT_ROW = "fault row"
SIMULATION = "simulation"
NODE = "node"
ATTACKS = "attacks"
ATTACK = re.compile(r"^.+ at \w+: \d+ of \d+ succeeded$", re.MULTILINE)


def told_results(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each section that there is something to say in."""
    rows = [RowReport.parse(text) for text in _values(terminalreporter, FAULT_ROW)]
    if rows:
        report = FaultReport(rows)
        yield "faults", [*report.table(), str(report.total())]
    if simulated := list(_values(terminalreporter, SIMULATION)):
        yield "simulation", simulated
    if attacks := list(_values(terminalreporter, ATTACKS)):
        yield "attacks on the sandbox", sorted(attacks)
    ran = list(_values(terminalreporter, RAN))
    skipped = list(_values(terminalreporter, SKIPPED))
    if ran or skipped:
        # Here, because it loads the toolrunner, which few runs need.
        from support.toolrunner.sandboxes import not_offered

        yield "levels of the sandbox", level_lines(ran, skipped, not_offered())
    if tables := [int(each) for each in _values(terminalreporter, CASES)]:
        yield "cases", [f"{len(tables)} of the tests ran {sum(tables)} cases"]
    if of_nodes := list(_values(terminalreporter, NODE)):
        yield "toolrunner", of_nodes


def keep_attacks(report: pytest.TestReport) -> None:
    """Keep what a test printed of attacks with its report, which travels from worker to run."""
    if report.when == "teardown":
        for title, content in report.sections:
            if title == "Captured stdout call":
                report.user_properties += [(ATTACKS, line) for line in ATTACK.findall(content)]


def _values(terminalreporter: pytest.TerminalReporter, name: str) -> Iterator[str]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            # The report on a test's end has everything that the earlier ones of it have.
            if isinstance(report, pytest.TestReport) and report.when == "teardown":
                yield from (str(value) for key, value in report.user_properties if key == name)
