"""`parley ls`: lists chats."""

import json
import shlex

import click

from parley.cli.accounts.people import person_with_login
from parley.cli.api.client import Api
from parley.cli.api.hints import hint_on
from parley.cli.api.server import find_server
from parley.cli.chats.listing import list_chats, row_of
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.text_table import text_table

COLUMNS = ("id", "status", "changed", "title")


@click.command(cls=HomeCommand)
@click.option(
    "-q", "--query", metavar="TERMS",
    help='Only these, for example \'title:"blue boat"\' or search:boat.',
)  # fmt: skip
@click.option("--archived", is_flag=True, help="Those that were put away.")
@click.option("--shared", is_flag=True, help="Those that others share with me.")
@click.option("--owner", metavar="LOGIN", help="Those of a user, by `parley break-glass`.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1, max=10_000), default=20, show_default=True,
    help="How many at most.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(
    query: str | None, archived: bool, shared: bool, owner: str | None, count: int, as_json: bool
) -> None:
    """List chats: pinned ones (^) first, then the newest change first; * marks unread ones."""
    api = Api(find_server(current()))
    filters = {"q": query} if query else {}
    filters |= {"owner_id": person_with_login(api, owner)["id"]} if owner else {}
    filters |= {"archived": "true"} if archived else {}
    filters |= {"shared_with_me": "true"} if shared else {}
    opening = f"break-glass open {shlex.quote(owner or '')} --reason ..."
    with hint_on("BREAK_GLASS_NEEDED", "open one with {}", opening):
        found = list(list_chats(api, filters, count=count))
    if as_json:
        click.echo(json.dumps({"items": found}, indent=2, ensure_ascii=False))
        return
    click.echo(text_table(COLUMNS, [row_of(chat) for chat in found]), nl=False)
