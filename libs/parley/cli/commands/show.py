"""`parley show`: prints one chat and its messages."""

import json

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.chats.actions import summary_of
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import (
    chat_path,
    last_messages,
    message_lines,
    one_line,
    queued_lines,
    status_word,
)
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.terminal_text import sanitized


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.option(
    "-n", "--count", type=click.IntRange(min=1, max=10_000), default=50, show_default=True,
    help="How many messages at most, counted from the end.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(chat_id: str, count: int, as_json: bool) -> None:
    """Print the chat CHAT: its state, its last messages, and those that wait."""
    api = Api(find_server(current()))
    chat = api.call("GET", chat_path(chat_id), needs="id")
    said = last_messages(api, chat_id, count=count)
    if as_json:
        click.echo(json.dumps({"chat": chat, **said}, indent=2, ensure_ascii=False))
        return
    click.echo(f"{one_line(str(chat.get('title') or ''))} ({status_word(chat)})")
    problem = chat.get("last_error")
    if problem:
        click.echo(sanitized(f"error: {problem.get('message')}"))
    retry = chat.get("retry")
    if retry:
        at, why = retry.get("retrying_at"), retry.get("error", {}).get("message")
        click.echo(sanitized(f"attempt {retry.get('attempt')} failed, next one at {at}: {why}"))
    for action in (chat.get("required_action") or {}).get("actions") or ():
        click.echo(
            f"waits for {action.get('kind')} {action.get('id')}: {one_line(summary_of(action))}"
        )
    for message in said["messages"]:
        for line in message_lines(message):
            click.echo(sanitized(line))
    for queued in said["queued_messages"]:
        for line in queued_lines(queued):
            click.echo(sanitized(line))
