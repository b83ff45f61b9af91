"""`parley token`: service tokens for internal callers, over the API of a running stack."""

import uuid
from pathlib import Path
from typing import Any

import click

from parley.cli.accounts.new_credentials import (
    SECONDS_PER_DAY,
    NewCredential,
    force_option,
    output_option,
    show_credentials,
)
from parley.cli.accounts.people import user_with_login
from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option

PATH = "/api/v1/service-tokens"
COLUMNS = ("id", "name", "scopes", "expires_at", "revoked_at")
DAYS_DEFAULT = 90


@click.group(cls=HomeGroup)
def token() -> None:
    """Issue, list and revoke tokens for internal callers."""


@token.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, required=True, help="For example chat:read.")
@click.option("--days", type=click.IntRange(min=1), default=DAYS_DEFAULT, show_default=True)
@click.option(
    "--user", "user", default="", metavar="LOGIN|ID", help="A service account; default: yourself."
)
@output_option
@force_option
@json_option
def issue(
    name: str,
    scopes: tuple[str, ...],
    days: int,
    user: str,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Issue a token called NAME and print it; it cannot be shown again."""
    new = NewCredential("token", output, force, as_json)
    new.check()
    api = current_api()
    body: dict[str, Any] = {
        "name": name,
        "scopes": list(scopes),
        "lifetime_s": days * SECONDS_PER_DAY,
        **({"user_id": _user_id(api, user)} if user else {}),
    }
    issued = api.call("POST", PATH, body, new_key(), needs="token")
    new.tell(issued, current().hint(f"token revoke {issued['id']}"))


@token.command()
@json_option
def ls(as_json: bool) -> None:
    """List the tokens."""
    show_credentials(current_api().call("GET", PATH, needs="items"), COLUMNS, as_json=as_json)


@token.command()
@click.argument("token_id")
def revoke(token_id: str) -> None:
    """Revoke the token with this id."""
    current_api().call("DELETE", f"{PATH}/{token_id}")
    click.echo(f"Revoked {token_id}.")


def _user_id(api: Api, user: str) -> str:
    """Return the id of a user who is named by it or by the login."""
    try:
        return str(uuid.UUID(user))
    except ValueError:
        return str(user_with_login(api, user)["id"])
