"""`parley doctor`: what this machine provides, what it lacks, and the effect of that."""

import json
import resource
from dataclasses import asdict

import click

from parley.cli.chats.default_model import default_model_line
from parley.cli.errors import ConfigurationProblem
from parley.cli.host import checks as machine
from parley.cli.host.sandbox_probe import SandboxCapabilities, probe_sandbox
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.supervision.process_table import load
from parley.cli.supervision.stale_processes import running


@click.command(cls=HomeCommand)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Show what this machine offers to Parley: PostgreSQL, Node, sandbox level, browser."""
    environment = current().environment
    search_path = environment.get("PATH")
    offer = probe_sandbox(current().home.root)
    findings = (
        *look_around(search_path, offer),
        machine.find_models(environment, _default_model()),
    )
    if as_json:
        click.echo(json.dumps(_document(findings, offer), indent=2))
    else:
        for finding in findings:
            mark = "✓" if finding.is_there else "✗" if finding.is_required else "-"
            cost = f": {finding.cost}" if finding.cost else ""
            click.echo(f"{mark} {finding.name:<16} {finding.detail}{cost}")
    broken = [found for found in findings if found.is_required and not found.is_there]
    if broken:
        raise ConfigurationProblem(*(f"{found.name}: {found.cost}" for found in broken))


def look_around(search_path: str | None, offer: SandboxCapabilities) -> tuple[machine.Finding, ...]:
    """Return all findings, in the order in which they are shown."""
    return (
        machine.find_python(),
        _postgres(),
        machine.find_sandbox(offer),
        *machine.find_layers(offer),
        machine.find_node(search_path),
        machine.find_browser(search_path),
        machine.find_cores(),
        machine.find_memory(),
        machine.find_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
    )


def _default_model() -> str | None:
    """Return the default model of the stack that runs in the home, if one does."""
    home = current().home
    table = load(home.processes_file)
    return default_model_line(home, table.http) if running(table.supervisor) is not None else None


def _postgres() -> machine.Finding:
    from parley.postgres.binaries import installed_binaries
    from parley.postgres.errors import BinariesMissing

    try:
        return machine.find_postgres(installed_binaries())
    except BinariesMissing as error:
        return machine.find_postgres((), str(error))


def _document(
    findings: tuple[machine.Finding, ...], offer: SandboxCapabilities
) -> dict[str, object]:
    return {
        "sandbox": {
            **asdict(offer),
        },
        "findings": [asdict(finding) for finding in findings],
    }
