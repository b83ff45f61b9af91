"""`parley monitor`: what wakes a chat when a background process prints a line or ends."""

import json
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import new_key
from parley.cli.api.server import find_server
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.invocation import current
from parley.cli.options import HomeGroup
from parley.cli.text import sanitized, text_table

COLUMNS = ("id", "state", "wakes on", "command", "what happened")


@click.group(cls=HomeGroup)
def monitor() -> None:
    """Show what wakes a chat, and cancel it."""


@monitor.command()
@click.argument("chat_id", type=CHAT_ID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(chat_id: str, as_json: bool) -> None:
    """List the monitors of CHAT_ID, the newest first."""
    found = _api().call("GET", _path(chat_id), needs="items")
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    click.echo(text_table(COLUMNS, [row_of(each) for each in found["items"]]), nl=False)


@monitor.command()
@click.argument("chat_id", type=CHAT_ID)
@click.argument("monitor_id")
def cancel(chat_id: str, monitor_id: str) -> None:
    """Let CHAT_ID not be woken by MONITOR_ID."""
    path = f"{_path(chat_id)}/{quote(monitor_id, safe='')}/cancel"
    found = _api().call("POST", path, {}, new_key(), needs="state")
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


def _api() -> Api:
    return Api(find_server(current()))
