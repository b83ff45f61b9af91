"""`parley share`: lets others read a chat."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from parley.cli.accounts.people import logins_of, person_with_login
from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json


@click.command(cls=HomeCommand)
@click.argument("chat_id", type=CHAT_ID)
@click.argument("logins", nargs=-1, metavar="[LOGIN]...")
@click.option("--remove", "removed", multiple=True, metavar="LOGIN", help="No longer with them.")
@json_option
def share(chat_id: str, logins: tuple[str, ...], removed: tuple[str, ...], as_json: bool) -> None:
    """Let the users LOGIN read a chat; without any, print who may read it.

    After a change it tells what was changed, and who may read the chat now.
    """
    api = current_api()
    path = f"/api/v1/chats/{chat_id}/shares"
    shares = api.call("GET", path, needs="shares")["shares"]
    if logins or removed:
        added = [person_with_login(api, login)["id"] for login in logins]
        gone = {person_with_login(api, login)["id"] for login in removed}
        users = [
            each["user_id"] for each in shares if each["user_id"] and each["user_id"] not in gone
        ]
        wanted = [{"user_id": each} for each in dict.fromkeys((*users, *added))]
        wanted += [{"group_id": each["group_id"]} for each in shares if each["group_id"]]
        shares = api.call("PUT", path, {"shares": wanted}, new_key(), needs="shares")["shares"]
    if as_json:
        print_json({"shares": shares}, as_ascii=True)
        return
    known = logins_of(api, (each["user_id"] for each in shares if each["user_id"]))
    readers = [_name(each, known) for each in shares]
    if logins or removed:
        click.echo(_change_line(logins, removed))
        click.echo(f"Besides its owner it can be read by {', '.join(readers) or 'no other user'}.")
        return
    for reader in readers:
        click.echo(reader)
    if not readers:
        click.echo("The chat is not shared.", err=True)


def _change_line(logins: Sequence[str], removed: Sequence[str]) -> str:
    """Return what a change of shares did."""
    words = [
        *([f"shared with {', '.join(logins)}"] if logins else []),
        *([f"no longer shared with {', '.join(removed)}"] if removed else []),
    ]
    return f"The chat is {' and '.join(words)}."


def _name(share: Mapping[str, Any], logins: Mapping[str, str]) -> str:
    user_id = share["user_id"]
    return logins.get(user_id, user_id) if user_id else f"group {share['group_id']}"
