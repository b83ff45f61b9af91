"""`parley users`: lets people in, over the API of a running stack."""

from pathlib import Path
from typing import Any

import click

from parley.cli.accounts.account import save_export
from parley.cli.accounts.people import USERS as PATH
from parley.cli.accounts.people import find_user, list_users, user_with_login
from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.requests import current_api, new_key
from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, check_terminal, json_option
from parley.cli.text import print_json, print_list
from parley.cli.time_words import until
from parley.clock import SystemClock

COLUMNS = ("login", "role", "state", "kind", "display_name", "id")
ROLES = ("member", "admin", "auditor", "owner")
#: Codes of problems that another command of this group mends.
STILL_ACTIVE = "USER_STILL_ACTIVE"
DEACTIVATED = "USER_DEACTIVATED"


@click.group(cls=HomeGroup)
def users() -> None:
    """List users, let them in, lock them out, export what is theirs and delete them."""


@users.command()
@json_option
def ls(as_json: bool) -> None:
    """List users."""
    found = list_users(current_api())
    rows = ([str(each[column]) for column in COLUMNS] for each in found)
    print_list({"items": found}, COLUMNS, rows, as_json=as_json, as_ascii=True)


@users.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help=f"The role (default: {ROLES[0]}).")
@click.option("--display-name", default="", help="The name to show (default: NAME).")
@click.option("--email", default="", help="The address for notices.")
@json_option
def invite(name: str, role: str | None, display_name: str, email: str, as_json: bool) -> None:
    """Make the user NAME, if there is none, and print a link for their first sign-in.

    For a user who has signed in before, `parley users reset` prints a link.
    """
    if not name.strip():
        raise click.UsageError("NAME is empty: give the login of the person.")
    api = current_api()
    user = find_user(api, name)
    if user is not None and (role not in (None, user["role"]) or display_name or email):
        raise CliError(
            f"there is a user {name} already, with the role {user['role']}: "
            "leave out --role, --display-name and --email to print a new link; "
            f"`{current().hint(f'users role {name} ROLE')}` changes the role"
        )
    if user is not None:
        _print_new_invitation(api, user, as_json)
    else:
        body = {
            "login": name,
            "role": role or ROLES[0],
            "display_name": display_name,
            "email": email,
        }
        user = api.call(
            "POST", PATH, {key: text for key, text in body.items() if text}, new_key(), needs="id"
        )
        _print_link(_new_link(api, user, "invitation"), as_json)


@users.command()
@click.argument("name")
@json_option
def reset(name: str, as_json: bool) -> None:
    """Print a link by which the user NAME sets a new password."""
    api = current_api()
    _print_link(_new_link(api, user_with_login(api, name), "password_reset"), as_json)


@users.command()
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
def role(name: str, role: str) -> None:
    """Give the user NAME another ROLE."""
    api = current_api()
    path = f"{PATH}/{user_with_login(api, name)['id']}"
    changed = api.call("PATCH", path, {"role": role}, new_key(), needs="role")
    click.echo(f"{name} has the role {changed['role']}.")


@users.command()
@click.argument("name")
def deactivate(name: str) -> None:
    """Lock the user NAME out and end their turns; their chats and files stay."""
    api = current_api()
    api.call("POST", f"{PATH}/{user_with_login(api, name)['id']}/deactivate", None, new_key())
    back = current().hint(f"users reactivate {name}")
    click.echo(f"Deactivated {name}; `{back}` lets them in again.")


@users.command()
@click.argument("name")
def reactivate(name: str) -> None:
    """Let the deactivated user NAME in again; revoked API keys stay revoked."""
    api = current_api()
    api.call("POST", f"{PATH}/{user_with_login(api, name)['id']}/reactivate", None, new_key())
    click.echo(f"Reactivated {name}.")


@users.command()
@click.argument("name")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
def export(name: str, path: Path) -> None:
    """Write all that belongs to the deactivated user NAME to the ZIP file PATH."""
    api = current_api()
    try:
        save_export(api, f"{PATH}/{user_with_login(api, name)['id']}/exports", path)
    except ApiRefused as error:
        if error.code != STILL_ACTIVE:
            raise
        first = current().hint(f"users deactivate {name}")
        raise CliError(f"{name} is active: deactivate them first with `{first}`") from error


@users.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(name: str, yes: bool) -> None:
    """Deactivate the user NAME and delete all that is theirs, for good."""
    api = current_api()
    user = user_with_login(api, name)
    if not yes:
        check_terminal("--yes")
        click.confirm(f"Delete {name} and all their chats, files and workspaces?", abort=True)
    path = f"{PATH}/{user['id']}"
    if user["state"] == "active":
        api.call("POST", f"{path}/deactivate", None, new_key())
    api.call("DELETE", path, None, new_key())
    click.echo(f"Deleted {name}; their chats, files and workspaces go within minutes.")


def _print_new_invitation(api: Api, user: Any, as_json: bool) -> None:
    """Print another link for a user who has not signed in yet.

    Raises:
        ConfigurationProblem: They have.
    """
    name = user["login"]
    links = api.call("GET", f"{PATH}/{user['id']}/sign-in-links", needs="items")["items"]
    if any(link.get("used_at") for link in links):
        raise ConfigurationProblem(
            f"there is a user {name} already, who has signed in before: "
            f"`{current().hint(f'users reset {name}')}` prints a link for a new password"
        )
    made = _new_link(api, user, "invitation")
    click.echo(
        f"There is a user {name} already, who has used no link yet: this link takes the place of "
        "earlier ones, and sets their password.",
        err=True,
    )
    _print_link(made, as_json)


def _new_link(api: Api, user: Any, purpose: str) -> Any:
    path = f"{PATH}/{user['id']}/sign-in-links"
    try:
        return api.call("POST", path, {"purpose": purpose}, new_key(), needs="url")
    except ApiRefused as error:
        if error.code != DEACTIVATED:
            raise
        name = user["login"]
        first = current().hint(f"users reactivate {name}")
        raise CliError(f"{name} is deactivated: let them in with `{first}` first") from error


def _print_link(made: Any, as_json: bool) -> None:
    if as_json:
        print_json(made, as_ascii=True)
        return
    click.echo(made["url"])
    end = until(made["expires_at"], SystemClock().now())
    click.echo(f"The link works once, until {end}; send it to them alone.", err=True)
