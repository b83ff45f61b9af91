"""`parley secret`: secrets that workspaces may use without reading them."""

import sys
from typing import Any
from urllib.parse import urlencode

import click

from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.chats.id_prefixes import WORKSPACES, item_named
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list

PATH = "/api/v1/secrets"
COLUMNS = ("name", "delivery", "hosts", "hint", "owner_id", "last_used_at")

USE_COLUMNS = ("used_at", "secret_name", "host", "purpose", "outcome", "workspace_id")


@click.group(cls=HomeGroup)
def secret() -> None:
    """Keep secrets and grant them to workspaces."""


@secret.command()
@json_option
def ls(as_json: bool) -> None:
    """List secrets; values are never shown."""
    items = list(listed(current_api(), PATH))
    rows = ([_cell(item.get(column)) for column in COLUMNS] for item in items)
    print_list({"items": items}, COLUMNS, rows, as_json=as_json)


@secret.command()
@click.argument("name")
@click.option("--host", "hosts", multiple=True, help="Where it may be sent; several are allowed.")
@click.option(
    "--delivery", type=click.Choice(["proxy", "git", "environment"]), default="proxy",
    help="How it gets there.",
)  # fmt: skip
@click.option("--username", default="", help="Sent with it.")
@click.option("--header", default="", help="Carries it; left out: Authorization.")
@click.option("--description", default="", help="What it is for.")
@click.option("--shared", is_flag=True, help="For the whole installation; administrators only.")
def put(
    name: str,
    hosts: tuple[str, ...],
    delivery: str,
    username: str,
    header: str,
    description: str,
    shared: bool,
) -> None:
    """Store the secret NAME; its value is asked for, or read from standard input."""
    value = (
        click.prompt("Value", hide_input=True) if sys.stdin.isatty() else sys.stdin.read().strip()
    )
    body = {
        "name": name,
        "value": value,
        "hosts": list(hosts),
        "delivery": delivery,
        "username": username,
        "header": header,
        "description": description,
        "shared": shared,
    }
    stored = current_api().call("POST", PATH, body, new_key(), needs="name")
    click.echo(f"Stored {stored['name']} for {', '.join(stored['hosts']) or 'its workspaces'}.")


@secret.command()
@click.argument("name")
def rm(name: str) -> None:
    """Forget the secret NAME; no workspace can use it any more."""
    api = current_api()
    found = item_named(api, PATH, "secret", name)
    api.call("DELETE", f"{PATH}/{found['id']}", None, new_key())
    click.echo(f"Forgot {name}.")


@secret.command()
@click.argument("workspace", required=False)
@click.option("-n", "count", default=20, type=click.IntRange(1, 200), help="How many.")
@json_option
def uses(workspace: str | None, count: int, as_json: bool) -> None:
    """Show when secrets were used last, by WORKSPACE or by all of yours, and what for."""
    api = current_api()
    found = None if workspace is None else item_named(api, WORKSPACES, "workspace", workspace)
    wanted = {"limit": str(count), **({} if found is None else {"workspace_id": found["id"]})}
    items = api.call("GET", f"{PATH}/uses?{urlencode(wanted)}", needs="items")["items"]
    rows = ([_cell(item.get(column)) for column in USE_COLUMNS] for item in items)
    print_list({"items": items}, USE_COLUMNS, rows, as_json=as_json)


@secret.command()
@click.argument("workspace")
@click.argument("names", nargs=-1)
def grant(workspace: str, names: tuple[str, ...]) -> None:
    """Let WORKSPACE, by its name or id, use the secrets NAMES and no others."""
    api = current_api()
    found = item_named(api, WORKSPACES, "workspace", workspace)
    path = f"{WORKSPACES}/{found['id']}/grants"
    given = api.call("PUT", path, {"secret_names": list(names)}, new_key(), needs="items")
    granted = ", ".join(item["name"] for item in given["items"]) or "no secrets"
    click.echo(f"{found['name']} may use {granted}.")


def _cell(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, list) else str(value or "")
    return text or "-"
