"""`parley api-keys`: one's own API keys, over the API of a running stack."""

from pathlib import Path
from urllib.parse import quote

import click

from parley.cli.accounts.new_credentials import (
    SECONDS_PER_DAY,
    NewCredential,
    force_option,
    output_option,
    show_credentials,
)
from parley.cli.api.requests import current_api, new_key
from parley.cli.api.sign_in import KEYS
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option

COLUMNS = ("id", "name", "scopes", "expires_at", "last_used_at", "revoked_at")
DAYS_DEFAULT = 90
DAYS_MAX = 366


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
@output_option
@force_option
@json_option
def create(
    name: str, scopes: tuple[str, ...], days: int, output: Path | None, force: bool, as_json: bool
) -> None:
    """Make an API key called NAME and print it; it cannot be shown again."""
    new = NewCredential("key", output, force, as_json)
    new.check()
    body = {"name": name, "scopes": list(scopes), "lifetime_s": days * SECONDS_PER_DAY}
    made = current_api().call("POST", KEYS, body, new_key(), needs="key")
    new.tell(made, current().hint(f"api-keys revoke {made['id']}"))


@api_keys.command()
@click.option("--all", "include_ended", is_flag=True, help="Also those that ended.")
@json_option
def ls(include_ended: bool, as_json: bool) -> None:
    """List your API keys, without their values."""
    path = f"{KEYS}?include_ended=true" if include_ended else KEYS
    show_credentials(current_api().call("GET", path, needs="items"), COLUMNS, as_json=as_json)


@api_keys.command()
@click.argument("key_id", metavar="ID")
def revoke(key_id: str) -> None:
    """Revoke the API key with this ID for good."""
    current_api().call("DELETE", f"{KEYS}/{quote(key_id, safe='')}", None, new_key())
    click.echo(f"Revoked {key_id}.")
