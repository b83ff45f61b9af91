"""`parley break-glass`: timed accesses of administrators to chats of others."""

from typing import Any

import click

from parley.cli.accounts.people import logins_of, person_with_login
from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_table

PATH = "/api/v1/break-glass"
COLUMNS = ("id", "administrator", "user", "opened_at", "expires_at", "state", "reason")


@click.group(cls=HomeGroup)
def break_glass() -> None:
    """Open an access to the chats of a user who sees it, list accesses and end them."""


@break_glass.command("open")
@click.argument("login")
@click.option("--reason", required=True, help="Why; the user and the audit log see it.")
@click.option("--minutes", type=click.IntRange(1, 480), default=60, show_default=True)
@json_option
def open_access(login: str, reason: str, minutes: int, as_json: bool) -> None:
    """Open an access to the chats of LOGIN; for administrators."""
    api = current_api()
    user = person_with_login(api, login)
    body = {"user_id": user["id"], "reason": reason, "duration_s": minutes * 60}
    access = api.call("POST", PATH, body, new_key(), needs="id")
    if as_json:
        print_json(access, as_ascii=True)
        return
    click.echo(access["id"])
    click.echo(
        f"The chats of {login} can be read until {access['expires_at']}, and {login} sees it. "
        f"List them with `{current().hint(f'ls --owner {login}')}`; end it with "
        f"`{current().hint('break-glass end')} {access['id']}`.",
        err=True,
    )


@break_glass.command()
@click.option("--all", "include_ended", is_flag=True, help="Also those that are over.")
@json_option
def ls(include_ended: bool, as_json: bool) -> None:
    """List accesses: administrators see all, others those to their own chats."""
    api = current_api()
    found = list(listed(api, PATH, {"include_ended": str(include_ended).lower()}))
    if as_json:
        print_json({"items": found}, as_ascii=True)
        return
    people = {each[role] for each in found for role in ("administrator_id", "user_id")}
    logins = logins_of(api, people)
    print_table(COLUMNS, [_row(each, logins) for each in found])


@break_glass.command()
@click.argument("access_id")
def end(access_id: str) -> None:
    """End an access before its time."""
    current_api().call("DELETE", f"{PATH}/{access_id}", None, new_key())
    click.echo(f"The access {access_id} is over.")


def _row(access: Any, logins: dict[str, str]) -> list[str]:
    return [
        access["id"],
        logins.get(access["administrator_id"], access["administrator_id"]),
        logins.get(access["user_id"], access["user_id"]),
        access["opened_at"],
        access["expires_at"],
        "open" if access["is_open"] else "over",
        access["reason"],
    ]
