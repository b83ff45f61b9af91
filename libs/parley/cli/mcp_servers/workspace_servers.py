"""`parley mcp workspace`: MCP servers that the workspace of a chat defines."""

import shlex
import sys
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.mcp_servers.references import print_prompts, print_resources
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list, sanitized

COLUMNS = ("name", "state", "command", "tools", "reason")

chat_argument = click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
name_argument = click.argument("name")


@click.group(cls=HomeGroup)
def workspace() -> None:
    """Look at the MCP servers in the workspace of a chat, and trust them."""


@workspace.command()
@chat_argument
@json_option
def ls(chat_id: str, as_json: bool) -> None:
    """List the servers that the .mcp.json in the workspace of CHAT defines."""
    found = _listed(current_api(), chat_id)
    rows = (
        [
            sanitized(each["name"]),
            each["state"],
            sanitized(command_of(each)),
            str(len(each["tool_names"])),
            sanitized(each["reason"] or ""),
        ]
        for each in found["servers"]
    )
    print_list(found, COLUMNS, rows, as_json=as_json)
    if found["problem"] and not as_json:
        click.echo(sanitized(found["problem"]), err=True)


@workspace.command()
@chat_argument
@name_argument
@click.option("--digest", help="Trust only the definition with this digest, without a question.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def trust(chat_id: str, name: str, digest: str | None, yes: bool) -> None:
    """Let turns of CHAT start the server NAME as it is defined now.

    It asks on the terminal; without one, --digest or --yes is needed.
    """
    api = current_api()
    if digest is None:
        server = _named(_listed(api, chat_id), name)
        digest = server["digest"] or ""
        click.echo(f"{sanitized(name)}: {sanitized(command_of(server))}", err=True)
        if not yes and not sys.stdin.isatty():
            raise click.UsageError(
                f"There is no terminal to ask on: add --digest {digest} to trust this definition, "
                "or --yes to trust whatever is defined now."
            )
        if not yes:
            click.confirm("Trust it?", abort=True, err=True)
    path = f"{_servers(chat_id)}/{quote(name, safe='')}/trust"
    trusted = api.call("PUT", path, {"digest": digest}, new_key(), needs="state")
    click.echo(trusted["state"])
    if trusted["state"] == "failed":
        reason = sanitized(str(trusted.get("reason") or "it ended"))
        click.echo(f"It is trusted, and failed before: {reason}", err=True)


@workspace.command()
@chat_argument
@name_argument
def untrust(chat_id: str, name: str) -> None:
    """Stop the server NAME, and start it no more."""
    api = current_api()
    defined = [server["name"] for server in _listed(api, chat_id)["servers"]]
    # Also for one that is not defined any more: it must not start if it is defined again.
    api.call("DELETE", f"{_servers(chat_id)}/{quote(name, safe='')}/trust", None, new_key())
    if name not in defined:
        raise CliError(
            f"the workspace defines no server {name}; "
            f"`{current().hint(f'mcp workspace ls {chat_id}')}` lists its servers"
        )
    click.echo(f"{sanitized(name)} is stopped, and not trusted any more.")


@workspace.command()
@chat_argument
@name_argument
@click.argument("uri", required=False)
@json_option
def resources(chat_id: str, name: str, uri: str | None, as_json: bool) -> None:
    """List the resources of the trusted server NAME, or print the one at URI."""
    api = current_api()
    path = f"{_servers(chat_id)}/{quote(name, safe='')}/resources"
    print_resources(api, path, uri, as_json=as_json)


@workspace.command()
@chat_argument
@name_argument
@click.argument("prompt", required=False)
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT=VALUE]...")
@json_option
def prompts(
    chat_id: str, name: str, prompt: str | None, arguments: tuple[str, ...], as_json: bool
) -> None:
    """List the prompts of the trusted server NAME, or print PROMPT with its arguments filled in."""
    api = current_api()
    path = f"{_servers(chat_id)}/{quote(name, safe='')}/prompts"
    wanted = None if prompt is None else {"prompt": prompt}
    print_prompts(api, path, wanted, arguments, as_json=as_json)


def command_of(server: dict[str, Any]) -> str:
    """Return what a server runs, with its variables, as a shell reads it."""
    if not server["command"]:
        return "-"
    # One of an earlier version sends no values.
    environment = server.get("environment") or dict.fromkeys(server["variable_names"], "")
    program = shlex.join([server["command"], *server["arguments"]])
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(environment.items())]
    return " ".join([*variables, program])


def _listed(api: Api, chat_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.call("GET", _servers(chat_id), needs="servers")
    return found


def _named(found: dict[str, Any], name: str) -> dict[str, Any]:
    for server in found["servers"]:
        if server["name"] == name and server["digest"]:
            return dict(server)
    raise CliError(
        f"the workspace defines no server {name} that can be started; "
        "`parley mcp workspace ls CHAT` lists its servers"
    )


def _servers(chat_id: str) -> str:
    return f"{chat_path(chat_id)}/servers"
