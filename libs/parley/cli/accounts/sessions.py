"""`parley sessions`: the browsers that are signed in as oneself."""

from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.requests import current_api, new_key
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list

PATH = "/api/v1/me/sessions"
COLUMNS = ("id", "method", "address", "last_seen_at", "expires_at", "user_agent")
NOT_FOUND = "SESSION_NOT_FOUND"


@click.group(cls=HomeGroup)
def sessions() -> None:
    """List and end sessions of one's own: browsers that are signed in.

    API keys are no sessions; see `parley api-keys`.
    """


@sessions.command()
@json_option
def ls(as_json: bool) -> None:
    """List your sessions, the last used first."""
    listed = _listed(current_api())
    rows = ([str(each.get(column) or "-") for column in COLUMNS] for each in listed)
    print_list({"items": listed}, COLUMNS, rows, as_json=as_json, as_ascii=True)


@sessions.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--others", is_flag=True, help="All sessions but the one of this request.")
def revoke(session_id: str | None, others: bool) -> None:
    """End the session with this ID, or all others.

    This command uses an API key and has no session: with --others all browsers are signed out.
    """
    if (session_id is None) is not others:
        raise click.UsageError("Name either a session or --others.")
    api = current_api()
    if session_id is not None:
        _end(api, session_id)
        click.echo(f"Ended {session_id}.")
        return
    ended = [each["id"] for each in _listed(api) if not each["is_current"]]
    for each in ended:
        try:
            _end(api, each)
        except ApiRefused as error:
            # It ended by itself since it was listed.
            if error.code != NOT_FOUND:
                raise
    click.echo(f"Ended {len(ended)} session{'' if len(ended) == 1 else 's'}.")


def _listed(api: Api) -> list[Any]:
    found: list[Any] = api.call("GET", PATH, needs="items")["items"]
    return found


def _end(api: Api, session_id: str) -> None:
    api.call("DELETE", f"{PATH}/{quote(session_id, safe='')}", None, new_key())
