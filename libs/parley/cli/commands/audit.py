"""`parley audit`: checks the invariants of the chat database, and reads the audit log."""

import json
import subprocess
import sys

import click

from parley.cli.accounts.audit_log import log
from parley.cli.api.requests import current_api
from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.invocation import Invocation, current
from parley.cli.options import HomeCommand, HomeGroup, json_option
from parley.cli.text import print_json
from parley.secrets import Keyring, KeyringUnreadable

RETENTION = "/api/v1/audit-log/retention"


@click.command(cls=HomeCommand)
@click.option(
    "--days", type=click.IntRange(1, 36_500), help="Count what is older; nothing is pruned."
)
@json_option
def retention(days: int | None, as_json: bool) -> None:
    """Show how long entries are kept, and what would be pruned; for administrators and auditors.

    The gateway prunes by GATEWAY_AUDIT_RETENTION_DAYS. This command changes nothing.
    """
    query = "" if days is None else f"?days={days}"
    found = current_api().call("GET", f"{RETENTION}{query}", needs="retention_days")
    if as_json:
        print_json(found, as_ascii=True)
        return
    kept = found["retention_days"]
    click.echo(f"Entries are kept for {kept} days." if kept else "All entries are kept.")
    if found["days"]:
        last = f", up to line {found['old_seq']}" if found["old_entries"] else ""
        click.echo(f"Older than {found['days']} days: {found['old_entries']} entries{last}.")
    if found["checkpoint_seq"]:
        at = found["checkpoint_at"]
        click.echo(f"Pruned up to line {found['checkpoint_seq']}, by the checkpoint of {at}.")


PROGRAM = ("-m", "chatd.audit")


@click.group(cls=HomeGroup, invoke_without_command=True)
@click.option("--database", "database_url", metavar="URL", help="Any database, also a copy.")
@click.option("--live", "is_live", is_flag=True, help="Services run on it: check leases too.")
@json_option
@click.pass_context
def audit(
    context: click.Context, database_url: str | None, is_live: bool, as_json: bool
) -> int | None:
    """Check the database of the stack that runs in the home, or read the audit log.

    Without a command the database is checked, and nothing is changed. Encrypted values are compared
    with the master keys of the home, or with those that services have recorded if another database
    is named. Exit code 1 if something does not hold, with the ids of what offends; 2 if the
    database cannot be audited.
    """
    if context.invoked_subcommand is not None:
        return None
    invocation = current()
    url = database_url or _database_of(invocation)
    flags = [flag for flag, is_set in (("--live", is_live), ("--json", as_json)) if is_set]
    if database_url is None:
        flags += [f"--key-id={key.id}" for key in _keyring(invocation.home).keys]
    # Every user of the machine can see arguments, and the URL contains a password.
    ended = subprocess.run(
        [sys.executable, *PROGRAM, "--database-url-file", "/dev/stdin", *flags],
        input=url,
        text=True,
        env=dict(invocation.environment),
        check=False,
    )
    return ended.returncode


audit.add_command(log)
audit.add_command(retention)


def _keyring(home: Home) -> Keyring:
    try:
        return Keyring.load(home.master_key_file)
    except KeyringUnreadable as error:
        raise ConfigurationProblem(str(error)) from error


def _database_of(invocation: Invocation) -> str:
    home = invocation.home
    home.check()
    try:
        url = json.loads(home.endpoints_file.read_text())["database"]
    except FileNotFoundError as error:
        raise ConfigurationProblem(
            f"Parley does not run in {home.root}: start it with `{invocation.hint('up')}`, "
            "or name a database with --database URL"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationProblem(
            f"{home.endpoints_file} cannot be used: start again with `{invocation.hint('up')}`"
        ) from error
    return str(url)
