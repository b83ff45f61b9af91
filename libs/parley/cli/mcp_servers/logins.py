"""`parley mcp login` and `parley mcp logout`: one's own logins at MCP servers."""

import time
import webbrowser
from typing import Any, Final

import click

from parley.cli.api.client import Api
from parley.cli.errors import CliError

LOGINS: Final = "/api/v1/mcp/logins"
POLL_S: Final = 2.0
CALL_S_MAX: Final = 35.0
#: States in which a login cannot be used.
UNUSABLE: Final = frozenset({"not_connected", "needs_reconnect", "insufficient_scope"})
REVOCATIONS: Final = {
    "revoked": "The server revoked the login.",
    "not_supported": "The server cannot revoke logins; the login there ends when it expires.",
    "failed": "The server did not revoke the login; you may want to revoke it there.",
}


def log_in(api: Api, server: Any, url: str, *, opens_browser: bool, wait_s: float) -> None:
    """Have the user log in with a browser, and wait until that is done.

    Raises:
        CliError: The server needs no login, or it was not made in time.
    """
    path = f"/api/v1/mcp/servers/{server['id']}/login"
    before = _status(api, path)
    if before["status"] not in UNUSABLE:
        click.echo(f"You are connected to {server['slug']}.")
        return
    address = f"{url}/mcp/login/{server['id']}"
    click.echo("Open this address in a browser in which you are signed in as the same user:")
    click.echo(f"  {address}")
    if opens_browser:
        webbrowser.open(address)
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        time.sleep(min(POLL_S, wait_s))  # noqa: TID251 (a command's own composition root)
        state = _status(api, path)
        # A login with more permissions is over when nothing is missing any more.
        if state["status"] not in UNUSABLE:
            click.echo(f"You are connected to {server['slug']}.")
            return
    raise CliError(f"nobody logged in at {server['slug']} within {wait_s:g} s")


def own_logins(api: Api) -> list[Any]:
    """Return the user's logins, also at servers that they may no longer use."""
    return list(api.call("GET", LOGINS, needs="items")["items"])


def own_login(api: Api, server: str) -> Any | None:
    """Return the server, named by slug or id, at which the user has a login; None without one."""
    for login in own_logins(api):
        if server in (login["slug"], login["server_id"]):
            return {"id": login["server_id"], "slug": login["slug"]}
    return None


def log_out(api: Api, server: Any, key: dict[str, str]) -> None:
    """Give the login up."""
    path = f"/api/v1/mcp/servers/{server['id']}/login"
    done = api.call("DELETE", path, None, key, needs="revocation", within_s=CALL_S_MAX)
    if not done["was_connected"]:
        click.echo(f"You were not connected to {server['slug']}.")
        return
    click.echo(f"Disconnected from {server['slug']}. {REVOCATIONS[done['revocation']]}")


def _status(api: Api, path: str) -> Any:
    return api.call("GET", path, needs="status")
