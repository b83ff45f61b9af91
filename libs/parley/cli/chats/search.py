"""`parley search`: finds words in chats."""

from collections.abc import Mapping
from typing import Any

import click

from parley.cli.api.requests import current_api, listed
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import one_line
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, sanitized

SEARCH = "/api/v1/search"
PAGE_MAX = 50


@click.command(cls=HomeCommand)
@click.argument("words", nargs=-1, required=True)
@click.option("--chat", "chat_id", type=CHAT_ID, metavar="ID", help="Only in this chat.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1, max=1000), default=20, show_default=True,
    help="How many at most.",
)  # fmt: skip
@json_option
def search(words: tuple[str, ...], chat_id: str | None, count: int, as_json: bool) -> None:
    """Find WORDS in titles and messages, newest first.

    All words must occur. Write '"two words"' for a phrase, -- -word for a word that must not
    occur, and or between alternatives.
    """
    query = {"q": " ".join(words), "chat_id": chat_id or ""}
    api = current_api()
    found = list(listed(api, SEARCH, query, count=count, page_max=PAGE_MAX))
    if as_json:
        print_json({"items": found})
        return
    if not found:
        click.echo("Nothing was found.", err=True)
    for hit in found:
        place = "title" if hit.get("message_id") is None else f"message {hit['message_id']}"
        click.echo(f"{hit.get('chat_id')} {place}  {one_line(str(hit.get('title') or ''))}")
        click.echo(f"    {_excerpt(hit)}")


def _excerpt(hit: Mapping[str, Any]) -> str:
    """Return the excerpt as one line, with the words in bold where the output is a terminal."""
    pieces = [
        (" ".join(f"|{sanitized(str(piece.get('text')))}|".split())[1:-1], piece.get("match"))
        for piece in hit.get("excerpt", ())
    ]
    return "".join(click.style(text, bold=True) if match else text for text, match in pieces)
