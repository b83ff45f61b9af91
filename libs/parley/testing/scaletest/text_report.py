"""The report as text; pure."""

from collections.abc import Iterable, Sequence

from parley.testing.scaletest.costs import ServiceCost
from parley.testing.scaletest.report import FOLLOW_UP, INITIAL, Percentiles, Report

NOT_AVAILABLE = "not available"
#: Text of the first column -> metric and phase.
ROWS = {
    "create": ("request", INITIAL),
    "send": ("request", FOLLOW_UP),
    "running, initial": ("running", INITIAL),
    "running, follow-up": ("running", FOLLOW_UP),
    "first output, initial": ("first_output", INITIAL),
    "first output, follow-up": ("first_output", FOLLOW_UP),
    "turn, initial": ("turn", INITIAL),
    "turn, follow-up": ("turn", FOLLOW_UP),
}


def lines_of(report: Report) -> Iterable[str]:
    """Yield the lines of a report."""
    load = report.load
    asked = load.chats * load.turns
    yield f"{report.turns_completed} of {asked} turns in {report.wall_s:.1f} s: " + (
        f"{report.turns_per_s:g} turns/s with {load.chats} chats, {load.clients} client processes"
    )
    yield ""
    yield from _columns(
        ("ms", "count", "p50", "p95", "p99", "max"),
        [_latency(name, report.latency[metric][phase]) for name, (metric, phase) in ROWS.items()],
    )
    yield ""
    yield from _stream(report)
    yield ""
    yield from _costs(report)
    yield ""
    yield from _verdict(report)


def _latency(name: str, found: Percentiles | None) -> tuple[str, ...]:
    if found is None:
        return (name, "0", "-", "-", "-", "-")
    times = (found.p50_ms, found.p95_ms, found.p99_ms, found.max_ms)
    return (name, str(found.count), *(f"{each:.1f}" for each in times))


def _stream(report: Report) -> Iterable[str]:
    found = report.stream
    yield (
        f"events {found['events']}, {found['bytes'] / 1e6:.1f} MB: {found['duplicates']} duplicate,"
        f" {found['missing']} missing, {found['reordered']} out of order,"
        f" {found['wrong_texts']} with another text"
    )
    yield (
        f"connections cut on purpose {found['cuts']}, broken off {found['breaks']},"
        f" refused for the moment {found['openings_refused']};"
        f" begun anew {found['resets']}; requests sent again {found['requests_resent']};"
        f" model retries {found['retries']}; waited in line {found['lines']}"
    )
    if found["chats_left_behind"]:
        yield f"chats that could not be deleted: {found['chats_left_behind']}"


def _costs(report: Report) -> Iterable[str]:
    services = dict(report.costs.services or {})
    if report.costs.clients is not None:
        services["load test itself"] = report.costs.clients
    yield from _columns(
        ("process", "number", "CPU ms/turn", "cores", "memory"),
        [_service(name, cost) for name, cost in services.items()],
    )
    if report.costs.services is None:
        yield f"processes of Parley: {NOT_AVAILABLE}, they do not run here"
    machine = report.costs.machine
    if machine is not None:
        yield (
            f"machine: {machine.cores} cores, {machine.memory_mib / 1024:.0f} GiB;"
            f" {machine.busy_cores:.2f} cores busy, {machine.elsewhere_cores:.2f} of them elsewhere"
        )
    database = report.costs.database
    if database is None:
        yield f"PostgreSQL: {NOT_AVAILABLE}"
        return
    yield (
        f"PostgreSQL: {_or_not(database.statements_per_turn)} statements and"
        f" {_or_not(database.commits_per_turn)} writing commits per turn, background included;"
        f" at most {database.connections_peak} of {database.connections_max} connections"
    )


def _service(name: str, cost: ServiceCost) -> tuple[str, ...]:
    per_turn = _or_not(cost.cpu_ms_per_turn)
    return name, str(cost.processes), per_turn, f"{cost.cores:.2f}", f"{cost.memory_mib:.0f} MiB"


def _or_not(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.2f}"


def _verdict(report: Report) -> Iterable[str]:
    if report.is_passed:
        yield "passed"
        return
    stages = ", ".join(f"{stage} {count}" for stage, count in report.failures.items() if count)
    yield f"FAILED: {report.chats_failed} chats failed" + (f" ({stages})" if stages else "")
    for line in (*report.exceeded, *report.problems):
        yield f"  {line}"


def _columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield a table with the first column left-aligned and the figures right-aligned."""
    lines = [names, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    for line in lines:
        first, *others = (
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join((first, *others)).rstrip()
