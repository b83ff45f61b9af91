"""`parley todos`: shows the to-do list of a chat."""

from collections.abc import Mapping
from typing import Any

import click

from parley.cli.api.requests import current_api
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_list

COLUMNS = ("id", "status", "to do")


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@json_option
def todos(chat_id: str, as_json: bool) -> None:
    """Show the to-do list that the model of the chat CHAT keeps."""
    found = current_api().call("GET", f"{chat_path(chat_id)}/todos", needs="items")
    print_list(found, COLUMNS, map(_row, found["items"]), as_json=as_json)


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(item["id"]), str(item["status"]).replace("_", " "), str(item["text"]))
