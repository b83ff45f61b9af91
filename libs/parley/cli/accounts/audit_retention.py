"""`parley audit retention`: what is pruned from the audit log, and what would be."""

import json

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.invocation import current
from parley.cli.options import HomeCommand

PATH = "/api/v1/audit-log/retention"


@click.command(cls=HomeCommand)
@click.option(
    "--days", type=click.IntRange(1, 36_500), help="Count what is older; nothing is pruned."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def retention(days: int | None, as_json: bool) -> None:
    """Show how long entries are kept, and what would be pruned; for administrators and auditors.

    The gateway prunes by GATEWAY_AUDIT_RETENTION_DAYS. This command changes nothing.
    """
    query = "" if days is None else f"?days={days}"
    found = Api(find_server(current())).call("GET", f"{PATH}{query}", needs="retention_days")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    kept = found["retention_days"]
    click.echo(f"Entries are kept for {kept} days." if kept else "All entries are kept.")
    if found["days"]:
        last = f", up to line {found['old_seq']}" if found["old_entries"] else ""
        click.echo(f"Older than {found['days']} days: {found['old_entries']} entries{last}.")
    if found["checkpoint_seq"]:
        at = found["checkpoint_at"]
        click.echo(f"Pruned up to line {found['checkpoint_seq']}, by the checkpoint of {at}.")
