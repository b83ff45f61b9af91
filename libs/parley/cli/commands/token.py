"""`parley token`: service tokens for internal callers, over the API of a running stack."""

import json
import uuid
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.invocation import current
from parley.cli.options import HomeGroup
from parley.cli.text_table import text_table

PATH = "/api/v1/service-tokens"
COLUMNS = ("id", "name", "scopes", "expires_at", "revoked_at")
DAYS_DEFAULT = 90
SECONDS_PER_DAY = 24 * 60 * 60


@click.group(cls=HomeGroup)
def token() -> None:
    """Issue, list and revoke tokens for internal callers."""


@token.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, required=True, help="For example chat:read.")
@click.option("--days", type=click.IntRange(min=1), default=DAYS_DEFAULT, show_default=True)
@click.option("--user", "user_id", default="", help="Id of a service account; default: yourself.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def issue(name: str, scopes: tuple[str, ...], days: int, user_id: str, as_json: bool) -> None:
    """Issue a token called NAME and print it; it cannot be shown again."""
    body: dict[str, Any] = {
        "name": name,
        "scopes": list(scopes),
        "lifetime_s": days * SECONDS_PER_DAY,
        **({"user_id": user_id} if user_id else {}),
    }
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    issued = _api().call("POST", PATH, body, {"Idempotency-Key": f'"{key}"'}, needs="token")
    if as_json:
        click.echo(json.dumps(issued, indent=2))
        return
    click.echo(issued["token"])
    click.echo(f"id {issued['id']}, expires {issued['expires_at']}", err=True)


@token.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(as_json: bool) -> None:
    """List the tokens."""
    listed = _api().call("GET", PATH, needs="items")
    if as_json:
        click.echo(json.dumps(listed, indent=2))
        return
    rows = [[_cell(item.get(column)) for column in COLUMNS] for item in listed["items"]]
    click.echo(text_table(COLUMNS, rows), nl=False)


@token.command()
@click.argument("token_id")
def revoke(token_id: str) -> None:
    """Revoke the token with this id."""
    _api().call("DELETE", f"{PATH}/{token_id}")
    click.echo(f"Revoked {token_id}.")


def _api() -> Api:
    return Api(find_server(current()))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return ",".join(value) if isinstance(value, list) else str(value)
