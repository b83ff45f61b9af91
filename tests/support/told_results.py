"""What tests tell at the end of a run: kept in their reports, so any process may have run them."""

from collections.abc import Iterator

import pytest

from support.fault_report import FaultReport, RowReport

FAULT_ROW = "fault row"
SIMULATION = "simulation"
NODE = "node"


def told_results(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each section that there is something to say in."""
    rows = [RowReport.parse(text) for text in _values(terminalreporter, FAULT_ROW)]
    if rows:
        report = FaultReport(rows)
        yield "faults", [*report.table(), str(report.total())]
    if simulated := list(_values(terminalreporter, SIMULATION)):
        yield "simulation", simulated
    if of_nodes := list(_values(terminalreporter, NODE)):
        yield "toolrunner", of_nodes


def _values(terminalreporter: pytest.TerminalReporter, name: str) -> Iterator[str]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            # The report on a test's end has everything that the earlier ones of it have.
            if isinstance(report, pytest.TestReport) and report.when == "teardown":
                yield from (str(value) for key, value in report.user_properties if key == name)
