"""`parley status`: the processes of the stack and their health."""

import asyncio
from contextlib import suppress
from dataclasses import asdict, dataclass

import click
import psutil

from parley.cli.chats.default_model import default_model_line
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.options import HomeCommand, json_option
from parley.cli.supervision.process_table import ProcessRecord, ProcessTable, load
from parley.cli.supervision.readiness import NetworkProbe
from parley.cli.supervision.stale_processes import running
from parley.cli.text import print_json, text_table

MIB = 1024 * 1024
COLUMNS = ("service", "pid", "healthy", "restarts", "memory", "address")


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The current state of one process."""

    service: str
    pid: int | None
    address: str
    healthy: bool
    restarts: int
    rss_bytes: int
    metrics: str | None = None
    problem: str | None = None  # The reason that an unhealthy process reports.


@click.command(cls=HomeCommand)
@json_option
def status(as_json: bool) -> None:
    """Show the processes of the stack that runs in the home; exit code 1 when none does."""
    invocation = current()
    home = invocation.local_home
    table = load(home.processes_file)
    is_up = running(table.supervisor) is not None
    found = asyncio.run(look_at(table, NetworkProbe())) if is_up else ()
    models = default_model_line(home, table.http) if is_up else None
    if as_json:
        document = {
            "http": table.http if is_up else None,
            "public_url": table.public_url if is_up else None,
            "models": models,
            "processes": [asdict(process) for process in found],
        }
        print_json(document, as_ascii=True)
    if not is_up:
        raise CliError(
            f"Parley does not run in {home.root}: start it with `{invocation.hint('up')}`"
        )
    if not as_json:
        public = table.public_url or table.http
        served = "" if public == table.http else f", served at {table.http}"
        click.echo(f"{public}{served}\nmodels: {models}\n")
        click.echo(_table(found), nl=False)
        for process in found:
            if process.problem:
                click.echo(f"\n{process.service}: {process.problem}")


async def look_at(table: ProcessTable, probe: NetworkProbe) -> tuple[ProcessStatus, ...]:
    """Return the state of the processes of `table`; all are probed concurrently."""
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_look_at(record, probe)) for record in table.processes]
    return tuple(task.result() for task in asked)


async def _look_at(record: ProcessRecord, probe: NetworkProbe) -> ProcessStatus:
    process = running(record.identity)
    rss_bytes = 0
    with suppress(psutil.NoSuchProcess):
        rss_bytes = process.memory_info().rss if process is not None else 0
    is_healthy = process is not None and await probe.is_ready(record.readiness)
    asks = process is not None and not is_healthy
    return ProcessStatus(
        service=record.service,
        pid=process.pid if process is not None else None,
        address=record.address,
        healthy=is_healthy,
        restarts=record.restarts,
        rss_bytes=rss_bytes,
        metrics=record.metrics,
        problem=await probe.problem(record.readiness) or None if asks else None,
    )


def _table(found: tuple[ProcessStatus, ...]) -> str:
    if not any(process.metrics for process in found):
        return text_table(COLUMNS, [_row(process) for process in found])
    rows = [(*_row(process), process.metrics or "-") for process in found]
    return text_table((*COLUMNS, "metrics"), rows)


def _row(process: ProcessStatus) -> tuple[str, ...]:
    return (
        process.service,
        str(process.pid or "-"),
        "yes" if process.healthy else "no",
        str(process.restarts),
        f"{process.rss_bytes / MIB:.0f} MiB",
        process.address,
    )
