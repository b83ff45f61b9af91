"""`parley issuers`: identity providers that people sign in with."""

import sys
from typing import Any

import click

from parley.cli.api.requests import current_api, new_key
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list

PATH = "/api/v1/oidc-issuers"
COLUMNS = ("name", "issuer", "client_id", "creates_users", "links_by_email", "source")


@click.group(cls=HomeGroup)
def issuers() -> None:
    """List, add, replace and remove identity providers; for administrators."""


@issuers.command()
@json_option
def ls(as_json: bool) -> None:
    """List identity providers."""
    found = current_api().call("GET", PATH, needs="items")
    print_list(found, COLUMNS, map(_row, found["items"]), as_json=as_json, as_ascii=True)


@issuers.command()
@click.argument("name")
@click.option("--issuer", required=True, help="Its https address, as its tokens say it.")
@click.option("--client-id", required=True)
@click.option("--display-name", help="What the button says; NAME if it is not given.")
@click.option(
    "--secret-stdin", is_flag=True, help="Read the secret of the client from standard input."
)
@click.option("--creates-users", is_flag=True, help="Create users at their first sign-in.")
@click.option(
    "--links-by-email",
    is_flag=True,
    help="Trust its verified addresses for users who cannot sign in yet.",
)
@click.option("--role", type=click.Choice(["member", "auditor"]), default="member")
def put(
    name: str,
    issuer: str,
    client_id: str,
    display_name: str | None,
    secret_stdin: bool,
    creates_users: bool,
    links_by_email: bool,
    role: str,
) -> None:
    """Add the identity provider NAME, or replace it."""
    body: dict[str, Any] = {
        "display_name": display_name or name,
        "issuer": issuer,
        "client_id": client_id,
        "creates_users": creates_users,
        "links_by_email": links_by_email,
        "role": role,
    }
    if secret_stdin:
        body["client_secret"] = sys.stdin.readline().rstrip("\n")
    stored = current_api().call("PUT", f"{PATH}/{name}", body, new_key(), needs="redirect_uri")
    click.echo(f"Register this redirect URI there: {stored['redirect_uri']}")


@issuers.command()
@click.argument("name")
def rm(name: str) -> None:
    """Remove the identity provider NAME; users and their links stay."""
    current_api().call("DELETE", f"{PATH}/{name}", None, new_key())


def _row(issuer: Any) -> list[str]:
    return [
        *(str(issuer[name]) for name in COLUMNS[:3]),
        "yes" if issuer["creates_users"] else "no",
        "yes" if issuer["links_by_email"] else "no",
        "file" if issuer["is_read_only"] else "stored",
    ]
