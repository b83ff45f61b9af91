"""`parley groups`: sets of users that shares and limits can name."""

import json
from typing import Any

import click

from parley.cli.accounts.people import list_users, user_with_login
from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list

PATH = "/api/v1/groups"
OWN = "/api/v1/me/groups"
COLUMNS = ("name", "member_count", "updated_at", "id")
MEMBER_COLUMNS = ("login", "role", "state", "kind", "display_name")

group_argument = click.argument("name", metavar="GROUP")
login_argument = click.argument("login")


@click.group(cls=HomeGroup)
def groups() -> None:
    """Make groups of users, which shares and spend limits can name; for administrators.

    GROUP is the name of a group, in which letter case does not matter.
    """


@groups.command()
@group_argument
@json_option
def create(name: str, as_json: bool) -> None:
    """Make the group GROUP, without members, and print its id."""
    made = current_api().call("POST", PATH, {"name": name}, new_key(), needs="id")
    click.echo(json.dumps(made, indent=2) if as_json else made["id"])


@groups.command()
@click.option("--mine", is_flag=True, help="Those to which you belong; for every user.")
@json_option
def ls(mine: bool, as_json: bool) -> None:
    """List groups."""
    api = current_api()
    found = api.call("GET", OWN, needs="items")["items"] if mine else list(listed(api, PATH))
    rows = ([str(each[column]) for column in COLUMNS] for each in found)
    print_list({"items": found}, COLUMNS, rows, as_json=as_json, as_ascii=True)


@groups.command()
@group_argument
@json_option
def show(name: str, as_json: bool) -> None:
    """List the members of GROUP."""
    api = current_api()
    group = group_with_name(api, name)
    members = list_users(api, path=f"{PATH}/{group['id']}/members")
    rows = ([str(each[column]) for column in MEMBER_COLUMNS] for each in members)
    print_list({**group, "members": members}, MEMBER_COLUMNS, rows, as_json=as_json, as_ascii=True)


@groups.command()
@group_argument
def rm(name: str) -> None:
    """Delete GROUP with the shares and limits that name it; its members stay users."""
    api = current_api()
    group = group_with_name(api, name)
    api.call("DELETE", f"{PATH}/{group['id']}", None, new_key())
    click.echo(f"Deleted {group['name']}.")


@groups.command("add-member")
@group_argument
@login_argument
def add_member(name: str, login: str) -> None:
    """Let the user LOGIN belong to GROUP."""
    group = _change_member("PUT", name, login)
    click.echo(f"{login} belongs to {group}.")


@groups.command("remove-member")
@group_argument
@login_argument
def remove_member(name: str, login: str) -> None:
    """Let the user LOGIN no longer belong to GROUP."""
    group = _change_member("DELETE", name, login)
    click.echo(f"{login} does not belong to {group} any more.")


def _change_member(method: str, name: str, login: str) -> str:
    """Add a user to a group or remove one; return the name of the group as it is written there."""
    api = current_api()
    group, user = group_with_name(api, name), user_with_login(api, login)
    api.call(method, f"{PATH}/{group['id']}/members/{user['id']}", None, new_key())
    return str(group["name"])


def group_with_name(api: Api, name: str) -> Any:
    """Return the group with this name.

    Raises:
        CliError: There is none.
    """
    for each in listed(api, PATH, {"q": name}):
        if each["name"].casefold() == name.casefold():
            return each
    raise CliError(f"there is no group {name}: see `{current().hint('groups ls')}`")
