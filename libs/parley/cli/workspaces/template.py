"""`parley template`: templates of workspaces, and how long these live."""

from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.chats.id_prefixes import item_named
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_list

PATH = "/api/v1/templates"
COLUMNS = ("id", "name", "kind", "lifetime", "description")
MINUTE_MS = 60_000

minutes = click.IntRange(min=0)


@click.group(cls=HomeGroup)
def template() -> None:
    """List templates of workspaces, and change how long workspaces of these live."""


@template.command()
@json_option
def ls(as_json: bool) -> None:
    """List templates with the lifetime of their workspaces."""
    found = list(listed(current_api(), PATH))
    rows = (
        (each["id"], each["name"], each["kind"], _lifetime(each), each["description"])
        for each in found
    )
    print_list(found, COLUMNS, rows, as_json=as_json)


@template.command()
@click.argument("name")
def show(name: str) -> None:
    """Print the template NAME, by its name or id, as JSON."""
    api = current_api()
    found = api.call("GET", _path(api, name), needs="id")
    print_json(found)


@template.command()
@click.argument("name")
@click.option("--ttl", type=minutes, help="Minutes from its start to its autostop; 0 never.")
@click.option("--most", type=minutes, help="Minutes that use or a user can reach; 0 no bound.")
@click.option(
    "--fixed/--not-fixed", "is_fixed", default=None,
    help="Whether the installation and users may not change it.",
)  # fmt: skip
def lifetime(name: str, ttl: int | None, most: int | None, is_fixed: bool | None) -> None:
    """Change how long new workspaces of the template NAME live; others stay as they are."""
    body: dict[str, object] = {}
    if ttl is not None:
        body["ttl_ms"] = ttl * MINUTE_MS
    if most is not None:
        body["ttl_max_ms"] = most * MINUTE_MS
    if is_fixed is not None:
        body["is_ttl_fixed"] = is_fixed
    if not body:
        raise click.UsageError("Nothing to change: give --ttl, --most, --fixed or --not-fixed.")
    api = current_api()
    changed = api.call("PATCH", _path(api, name), body, new_key(), needs="ttl_ms")
    click.echo(f"{changed['name']}: {_lifetime(changed)}")


def _path(api: Api, name: str) -> str:
    return f"{PATH}/{item_named(api, PATH, 'template', name)['id']}"


def _lifetime(found: dict[str, Any]) -> str:
    ttl = found["ttl_ms"] // MINUTE_MS
    most = found["ttl_max_ms"] // MINUTE_MS
    words = [f"{ttl} min" if ttl else "no end"]
    if most:
        words.append(f"at most {most} min")
    if found["is_ttl_fixed"]:
        words.append("fixed")
    return ", ".join(words)
