"""`parley todos`: shows the to-do list of a chat."""

import json
from collections.abc import Mapping
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.text import text_table

COLUMNS = ("id", "status", "to do")


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def todos(chat_id: str, as_json: bool) -> None:
    """Show the to-do list that the model of the chat CHAT keeps."""
    found = Api(find_server(current())).call("GET", f"{chat_path(chat_id)}/todos", needs="items")
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo(text_table(COLUMNS, list(map(_row, found["items"]))), nl=False)


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(item["id"]), str(item["status"]).replace("_", " "), str(item["text"]))
