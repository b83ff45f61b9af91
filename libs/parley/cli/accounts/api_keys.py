"""`parley api-keys`: one's own API keys, over the API of a running stack."""

import json
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api
from parley.cli.api.idempotency import new_key
from parley.cli.api.server import find_server
from parley.cli.api.sign_in import KEYS
from parley.cli.invocation import current
from parley.cli.options import HomeGroup
from parley.cli.text_table import text_table

COLUMNS = ("id", "name", "scopes", "expires_at", "last_used_at", "revoked_at")
DAYS_DEFAULT = 90
DAYS_MAX = 366
SECONDS_PER_DAY = 24 * 60 * 60


@click.group(cls=HomeGroup)
def api_keys() -> None:
    """Make, list and revoke API keys of one's own."""


@api_keys.command()
@click.argument("name")
@click.option(
    "--scope", "scopes", multiple=True, metavar="SCOPE",
    help="For example chat:read; several are allowed. Without any it may do all that you may.",
)  # fmt: skip
@click.option(
    "--days", type=click.IntRange(min=1, max=DAYS_MAX), default=DAYS_DEFAULT, show_default=True,
    help="How long the key is good.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create(name: str, scopes: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make an API key called NAME and print it; it cannot be shown again."""
    body = {"name": name, "scopes": list(scopes), "lifetime_s": days * SECONDS_PER_DAY}
    made = _api().call("POST", KEYS, body, new_key(), needs="key")
    if as_json:
        click.echo(json.dumps(made, indent=2))
        return
    click.echo(made["key"])
    click.echo(f"id {made['id']}, expires {made['expires_at']}", err=True)


@api_keys.command()
@click.option("--all", "include_ended", is_flag=True, help="Also those that ended.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(include_ended: bool, as_json: bool) -> None:
    """List your API keys, without their values."""
    path = f"{KEYS}?include_ended=true" if include_ended else KEYS
    listed = _api().call("GET", path, needs="items")
    if as_json:
        click.echo(json.dumps(listed, indent=2))
        return
    rows = [[_cell(item.get(column)) for column in COLUMNS] for item in listed["items"]]
    click.echo(text_table(COLUMNS, rows), nl=False)


@api_keys.command()
@click.argument("key_id", metavar="ID")
def revoke(key_id: str) -> None:
    """Revoke the API key with this ID for good."""
    _api().call("DELETE", f"{KEYS}/{quote(key_id, safe='')}", None, new_key())
    click.echo(f"Revoked {key_id}.")


def _api() -> Api:
    return Api(find_server(current()))


def _cell(value: Any) -> str:
    text = ",".join(value) if isinstance(value, list) else str(value or "")
    return text or "-"
