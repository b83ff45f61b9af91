"""`parley fork`: copies a chat up to a message."""

import json
import threading
import uuid
from time import monotonic
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.retries import post
from parley.cli.api.server import find_server
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.invocation import current
from parley.cli.options import HomeCommand

WAIT_S = 60.0


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.argument("message_id", metavar="[MESSAGE]", type=click.IntRange(min=1), required=False)
@click.option(
    "--workspace", type=click.Choice(("none", "same", "copy")), default="none", show_default=True,
    help="Work without its files, in the same ones, or in a copy of them as they are now.",
)  # fmt: skip
@click.option("--title", help="The title of the copy.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fork(
    chat_id: str, message_id: int | None, workspace: str, title: str | None, as_json: bool
) -> None:
    """Copy the chat CHAT up to MESSAGE, or all of it, into a new chat."""
    body: dict[str, Any] = {"workspace": workspace}
    body |= {} if message_id is None else {"message_id": message_id}
    body |= {} if title is None else {"title": title}
    made = post(
        Api(find_server(current())),
        f"{chat_path(chat_id)}/fork",
        body,
        key=str(uuid.uuid4()),  # noqa: TID251 (a command's own composition root)
        needs="id",
        deadline=monotonic() + WAIT_S,
        pause=threading.Event().wait,
        late="the copy was not made in time",
    )
    click.echo(json.dumps(made, indent=2, ensure_ascii=False) if as_json else made["id"])
