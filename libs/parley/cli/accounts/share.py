"""`parley share`: lets others read a chat."""

import json
import uuid

import click

from parley.cli.accounts.people import logins_of, person_with_login
from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.invocation import current
from parley.cli.options import HomeCommand


@click.command(cls=HomeCommand)
@click.argument("chat_id")
@click.argument("logins", nargs=-1, metavar="[LOGIN]...")
@click.option("--remove", "removed", multiple=True, metavar="LOGIN", help="No longer with them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def share(chat_id: str, logins: tuple[str, ...], removed: tuple[str, ...], as_json: bool) -> None:
    """Let the users LOGIN read a chat; without any, print who may read it."""
    api = Api(find_server(current()))
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
        key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
        headers = {"Idempotency-Key": f'"{key}"'}
        shares = api.call("PUT", path, {"shares": wanted}, headers, needs="shares")["shares"]
    if as_json:
        click.echo(json.dumps({"shares": shares}, indent=2))
        return
    known = logins_of(api, (each["user_id"] for each in shares if each["user_id"]))
    for each in shares:
        user_id = each["user_id"]
        name = known.get(user_id, user_id) if user_id else f"group {each['group_id']}"
        click.echo(name)
