"""`parley actions`: lists what chats wait for."""

import json

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.chats.actions import list_actions, row_of
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.text_table import text_table

COLUMNS = ("chat", "title", "kind", "asked", "since", "until")


@click.command(cls=HomeCommand)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def actions(as_json: bool) -> None:
    """List what my chats wait for, the longest first; `parley answer` answers it."""
    found = list_actions(Api(find_server(current())))
    if as_json:
        click.echo(json.dumps({"items": found}, indent=2, ensure_ascii=False))
    elif found:
        click.echo(text_table(COLUMNS, [row_of(action) for action in found]), nl=False)
    else:
        click.echo("No chat waits.", err=True)
