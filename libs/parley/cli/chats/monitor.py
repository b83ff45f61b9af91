"""`parley monitor` and `parley todos`: what wakes a chat, and what its model has to do."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.options import HomeCommand, HomeGroup, json_option
from parley.cli.text import print_list, sanitized

COLUMNS = ("id", "state", "wakes on", "command", "what happened")


@click.group(cls=HomeGroup)
def monitor() -> None:
    """Show what wakes a chat, and cancel it."""


@monitor.command()
@click.argument("chat_id", type=CHAT_ID)
@json_option
def ls(chat_id: str, as_json: bool) -> None:
    """List the monitors of CHAT_ID, the newest first."""
    found = current_api().call("GET", _path(chat_id), needs="items")
    print_list(found, COLUMNS, map(row_of, found["items"]), as_json=as_json)


@monitor.command()
@click.argument("chat_id", type=CHAT_ID)
@click.argument("monitor_id")
def cancel(chat_id: str, monitor_id: str) -> None:
    """Let CHAT_ID not be woken by MONITOR_ID."""
    path = f"{_path(chat_id)}/{quote(monitor_id, safe='')}/cancel"
    found = current_api().call("POST", path, {}, new_key(), needs="state")
    click.echo(f"It is {found['state']}.")


def row_of(found: dict[str, Any]) -> tuple[str, ...]:
    """Return a monitor as a row."""
    happened = " ".join(filter(None, (found["cause"], found["detail"], found["reason"])))
    return (
        found["id"],
        found["state"],
        sanitized(found["pattern"] or "its end"),
        sanitized(found["command"]),
        sanitized(happened or "-"),
    )


def _path(chat_id: str) -> str:
    return f"/api/v1/chats/{quote(chat_id, safe='')}/monitors"


TODO_COLUMNS = ("id", "status", "to do")


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@json_option
def todos(chat_id: str, as_json: bool) -> None:
    """Show the to-do list that the model of the chat CHAT keeps."""
    found = current_api().call("GET", f"{chat_path(chat_id)}/todos", needs="items")
    print_list(found, TODO_COLUMNS, map(_todo_row, found["items"]), as_json=as_json)


def _todo_row(item: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(item["id"]), str(item["status"]).replace("_", " "), str(item["text"]))
