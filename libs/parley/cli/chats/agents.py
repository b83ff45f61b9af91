"""`parley agents`: shows the agents of a chat as a tree."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.chats.listing import chat_path
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.text_table import text_table

COLUMNS = ("id", "status", "type", "name")


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def agents(chat_id: str, as_json: bool) -> None:
    """Show the agents that the chat CHAT and those below it have started."""
    api = Api(find_server(current()))
    asked = api.call("GET", chat_path(chat_id), needs="id")
    root = asked
    if asked.get("parent_chat_id"):
        root = api.call("GET", chat_path(str(asked["root_chat_id"])), needs="id")
    rows = list(below(str(asked["id"]), root.get("children") or ()))
    if as_json:
        items = [chat for _, chat in rows]
        click.echo(json.dumps({"items": items}, indent=2, ensure_ascii=False))
        return
    table = [_row(depth, chat) for depth, chat in rows]
    click.echo(text_table(COLUMNS, table), nl=False)


def below(
    parent_id: str, chats: Sequence[Mapping[str, Any]], depth: int = 0
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the chats below one, each after its parent, with their depth."""
    for chat in chats:
        if chat.get("parent_chat_id") == parent_id:
            yield depth, chat
            yield from below(str(chat["id"]), chats, depth + 1)


def _row(depth: int, chat: Mapping[str, Any]) -> tuple[str, ...]:
    kind = "explore" if chat.get("mode") == "explore" else "general"
    return (str(chat["id"]), str(chat["status"]), kind, "  " * depth + str(chat.get("title") or ""))
