"""`parley interrupt`: stops the turn of a chat."""

import json
import uuid

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.chats.listing import chat_path
from parley.cli.invocation import current
from parley.cli.options import HomeCommand


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT")
@click.option("--json", "as_json", is_flag=True, help="Print the chat as JSON.")
def interrupt(chat_id: str, as_json: bool) -> None:
    """Stop the turn of the chat CHAT and keep what it said; one that is over is no error."""
    api = Api(find_server(current()))
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    chat = api.call(
        "POST",
        f"{chat_path(chat_id)}/interrupt",
        {},
        {"Idempotency-Key": f'"{key}"'},
        needs="status",
    )
    if as_json:
        click.echo(json.dumps(chat, indent=2, ensure_ascii=False))
    else:
        click.echo(f"The chat is {chat['status']}.")
