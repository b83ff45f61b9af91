"""`parley checkpoints`: the files that turns of a chat changed, as each turn left them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import click

from parley.cli.api.requests import current_api
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.errors import CliError
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import echo_foreign, print_list, sanitized

COLUMNS = ("path", "change", "lines")

chat_argument = click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
message_argument = click.argument("message_id", metavar="MESSAGE", type=click.IntRange(min=1))


@click.group(cls=HomeGroup)
def checkpoints() -> None:
    """Look at the files that the turn of a message changed."""


@checkpoints.command()
@chat_argument
@message_argument
@json_option
def ls(chat_id: str, message_id: int, as_json: bool) -> None:
    """List the files that the turn which MESSAGE started in CHAT changed."""
    found = _files(chat_id, message_id)
    print_list(found, COLUMNS, map(_row, found["files"]), as_json=as_json)
    if not as_json and (found["incomplete"] or found["omitted"]):
        click.echo("there are more changes, which are not known or not listed", err=True)


@checkpoints.command()
@chat_argument
@message_argument
def diff(chat_id: str, message_id: int) -> None:
    """Print the difference that the turn made."""
    for file in _files(chat_id, message_id)["files"]:
        echo_foreign(file["patch"], nl=False)
        if not file["patch"]:
            click.echo(f"{sanitized(file['path'])}: no difference to show", err=True)


@checkpoints.command()
@chat_argument
@message_argument
@click.argument("path")
@click.option("--before", is_flag=True, help="As the turn found it.")
def cat(chat_id: str, message_id: int, path: str, before: bool) -> None:
    """Print the file PATH as the turn left it."""
    query = urlencode({"path": path, **({"before": "true"} if before else {})})
    address = f"{_path(chat_id, message_id)}/content?{query}"
    found = current_api().call("GET", address, needs="content")
    if found["binary"]:
        raise CliError(f"{path} is not text; it has {found['size_bytes']} bytes")
    echo_foreign(found["content"], nl=False)
    if found["truncated"]:
        click.echo(f"the first part of {found['size_bytes']} bytes", err=True)


def _files(chat_id: str, message_id: int) -> dict[str, Any]:
    api = current_api()
    found: dict[str, Any] = api.call("GET", _path(chat_id, message_id), needs="files")
    return found


def _path(chat_id: str, message_id: int) -> str:
    return f"{chat_path(chat_id)}/turns/{message_id}/files"


def _row(file: Mapping[str, Any]) -> tuple[str, ...]:
    lines = f"+{file['added_lines']} -{file['deleted_lines']}" if file["patch"] else ""
    return (sanitized(file["path"]), file["change"], lines)
