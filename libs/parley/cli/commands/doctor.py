"""`parley doctor`: what this machine provides, what it lacks, and the effect of that."""

import resource
from contextlib import suppress
from dataclasses import asdict

import click

from parley.cli.chats.default_model import default_model_line
from parley.cli.errors import ConfigurationProblem
from parley.cli.host import checks as machine
from parley.cli.host.public_checks import Installation, check_public
from parley.cli.host.sandbox_probe import SandboxCapabilities, probe_sandbox
from parley.cli.invocation import current
from parley.cli.options import HomeCommand, json_option
from parley.cli.stack.service_settings import PUBLIC_URL
from parley.cli.supervision.process_table import load
from parley.cli.supervision.stale_processes import running
from parley.cli.text import print_json
from parley.clock import SystemClock


@click.command(cls=HomeCommand)
@click.option(
    "--public", "is_public", is_flag=True,
    help="Check the public URL instead, through the proxy in front of it.",
)  # fmt: skip
@click.option("--url", metavar="URL", help="With --public: a URL other than that of the stack.")
@json_option
def doctor(is_public: bool, url: str | None, as_json: bool) -> None:
    """Show what this machine offers to Parley: PostgreSQL, Node, sandbox level, browser.

    With --public, show whether the installation is ready to be used from other machines.
    """
    if url is not None and not is_public:
        raise ConfigurationProblem("--url is for --public: add it")
    if is_public:
        _show(check_public(_installation(url)), as_json)
        return
    environment = current().environment
    search_path = environment.get("PATH")
    offer = probe_sandbox(current().home.root)
    findings = (
        *look_around(search_path, offer),
        machine.find_models(environment, _default_model()),
    )
    _show(findings, as_json, sandbox=asdict(offer))


def _show(findings: tuple[machine.Finding, ...], as_json: bool, **more: object) -> None:
    if as_json:
        document = {**more, "findings": [asdict(finding) for finding in findings]}
        print_json(document, as_ascii=True)
    else:
        for finding in findings:
            mark = "✓" if finding.is_there else "✗" if finding.is_required else "-"
            cost = f": {finding.cost}" if finding.cost else ""
            click.echo(f"{mark} {finding.name:<16} {finding.detail}{cost}")
    broken = [found for found in findings if found.is_required and not found.is_there]
    if broken:
        names = ", ".join(found.name for found in broken)
        raise ConfigurationProblem(f"not ready: {names}; the lines with ✗ say what to do")


def _installation(url: str | None) -> Installation:
    """Return the installation to check: that of the URL, or the one that runs in the home."""
    environment, home = current().environment, current().home
    public_url = url or environment.get(PUBLIC_URL) or load(home.processes_file).public_url
    if not public_url:
        raise ConfigurationProblem("no public URL is known: start Parley, or name one with --url")
    key = ""
    with suppress(OSError):
        key = home.api_key_file.read_text().strip()
    authorities_file = environment.get("SSL_CERT_FILE")
    return Installation(public_url, authorities_file, SystemClock().now, key)


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
