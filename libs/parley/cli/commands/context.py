"""`parley context`: tells what the next prompt of a chat consists of."""

import threading
import uuid
from time import monotonic
from typing import Any

import click

from parley.cli.api.requests import current_api
from parley.cli.api.retries import post
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, sanitized

WAIT_S = 30.0


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.option("--refresh", is_flag=True, help="Read the instruction files again first.")
@json_option
def context(chat_id: str, refresh: bool, as_json: bool) -> None:
    """Tell how much of its model's window each part of the chat CHAT takes."""
    api = current_api()
    path = f"{chat_path(chat_id)}/context"
    if refresh:
        found = post(
            api,
            f"{path}/refresh",
            {},
            key=str(uuid.uuid4()),  # noqa: TID251 (a command's own composition root)
            needs="parts",
            deadline=monotonic() + WAIT_S,
            pause=threading.Event().wait,
            late="the instruction files were not read in time",
        )
    else:
        found = api.call("GET", path, needs="parts")
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(lines_of(found)))


def lines_of(found: dict[str, Any]) -> list[str]:
    """Return the lines that describe the context of a chat."""
    total, limit = sum(part["tokens"] for part in found["parts"]), found["context_limit_tokens"]
    lines = [f"{part['kind'].replace('_', ' '):<15}{part['tokens']:>9}" for part in found["parts"]]
    of_window = f" of {limit} ({100 * total / limit:.0f} %)" if limit else ""
    lines.append(f"{'all':<15}{total:>9}{of_window} tokens, estimated")
    for file in found["instruction_files"]:
        cut = ", cut" if file["truncated"] else ""
        lines.append(f"  {sanitized(file['path'])}: {file['tokens']} tokens{cut}")
    if found["instructions_drifted"]:
        lines.append("The instruction files have changed since; --refresh reads them again.")
    return lines
