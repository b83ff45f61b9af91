"""`parley mcp`: MCP servers, whose tools chats use."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.api.server import find_server
from parley.cli.chats.id_prefixes import GROUP_ID, USER_ID
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.mcp_servers.approving import print_change, waiting_tools
from parley.cli.mcp_servers.changing import change_options, changes_of, print_changes
from parley.cli.mcp_servers.logins import log_in, log_out, own_login, own_logins
from parley.cli.mcp_servers.references import print_prompts, print_resources
from parley.cli.mcp_servers.workspace_servers import workspace
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import echo_foreign, print_json, print_list, print_table, sanitized

SERVERS = "/api/v1/mcp/servers"
CALLS = "/api/v1/mcp/calls"
COLUMNS = ("slug", "id", "enabled", "availability", "health", "authorization")
CALL_COLUMNS = ("started_at", "server", "tool", "user_id", "chat_id", "outcome", "duration_ms")
LOGIN_COLUMNS = ("slug", "id", "authorization", "usable")
TOOL_COLUMNS = ("tool", "approval", "state", "description")

PROBE_S_MAX = 95.0
CALL_S_MAX = 620.0

server_argument = click.argument("server")


@click.group(cls=HomeGroup)
def mcp() -> None:
    """Add MCP servers, look whether they work, and call their tools."""


mcp.add_command(workspace)


@mcp.command()
@click.argument("slug")
@click.option("--url", required=True, help="Where the server is reached.")
@click.option("--name", "display_name", default="", help="Name to show.")
@click.option("--description", default="", help="What it is for.")
@click.option(
    "--transport", type=click.Choice(["streamable_http", "sse"]), default="streamable_http",
    help="How to talk to it.",
)  # fmt: skip
@click.option("--enable", is_flag=True, help="Switch it on.")
@click.option("--default-on", is_flag=True, help="Chats use it unless they choose others.")
@click.option("--force-on", is_flag=True, help="Every chat uses it.")
@click.option("--required", is_flag=True, help="Turns fail when it cannot be reached.")
@click.option(
    "--approval", type=click.Choice(["never", "destructive", "always"]),
    help="When a person has to approve a call.",
)  # fmt: skip
@click.option("--trusted", is_flag=True, help="Believe what it says about effects of its tools.")
@click.option("--plan-mode", is_flag=True, help="Chats that plan may use it.")
@click.option("--allow", multiple=True, metavar="TOOL", help="Offer only these tools.")
@click.option("--deny", multiple=True, metavar="TOOL", help="Never offer these tools.")
@click.option(
    "--user", "user_ids", multiple=True, type=USER_ID, metavar="LOGIN", help="Who may use it."
)
@click.option(
    "--group", "group_ids", multiple=True, type=GROUP_ID, metavar="GROUP", help="Who may use it."
)
@click.option("--api-key-stdin", is_flag=True, help="Read an API key from standard input.")
@click.option(
    "--header-stdin", metavar="NAME", help="Read the value of this header from standard input."
)
@click.option("--oauth", is_flag=True, help="Each user logs in with OAuth.")
@click.option("--client-id", default="", help="OAuth client that was registered by hand.")
@click.option("--client-secret-stdin", is_flag=True, help="Read its secret from standard input.")
@click.option(
    "--user-value", "user_values", multiple=True, metavar="HEADER",
    help="Each user gives a value of this header.",
)  # fmt: skip
def add(slug: str, url: str, **options: Any) -> None:
    """Add the server SLUG, and print its id."""
    body = {"slug": slug, "url": url, **_settings(options)}
    made = current_api().call("POST", SERVERS, body, new_key(), needs="id")
    click.echo(made["id"])


@mcp.command()
@json_option
def ls(as_json: bool) -> None:
    """List the servers."""
    items = list(_items(current_api(), SERVERS))
    rows = (
        [
            item["slug"],
            item["id"],
            "yes" if item["is_enabled"] else "no",
            item["availability"] or "-",
            (item["health"] or {}).get("state") or "-",
            item["authorization_status"] or "-",
        ]
        for item in items
    )
    print_list({"items": items}, COLUMNS, rows, as_json=as_json)


@mcp.command()
@server_argument
def show(server: str) -> None:
    """Print everything about SERVER, a slug or an id."""
    print_json(_found(current_api(), server))


@mcp.command(name="set")
@server_argument
@change_options
def change(server: str, **options: Any) -> None:
    """Change settings of SERVER, and print what is different now.

    Lists are replaced as a whole. A change that somebody else made at the same time is not
    overwritten: then repeat the command.
    """
    api = current_api()
    found = _found(api, server)
    headers = {**new_key(), "If-Match": f'"{found["version"]}"'}
    path = f"{SERVERS}/{found['id']}"
    lines = sys.stdin.read().splitlines() if options["credentials_stdin"] else ()
    changed = api.call("PATCH", path, changes_of(options, found, lines), headers, needs="id")
    print_changes(found, changed)


@mcp.command()
@server_argument
def probe(server: str) -> None:
    """Contact SERVER, and print how far that went; exit code 1 if it does not work."""
    api = current_api()
    path = f"{SERVERS}/{_found(api, server)['id']}/probe"
    report = api.call("POST", path, {}, new_key(), needs="phases", within_s=PROBE_S_MAX)
    for phase in report["phases"]:
        failed = phase["reason"] is not None
        line = f"{'failed' if failed else 'ok':7} {phase['kind']:14} {phase['duration_ms']} ms"
        click.echo(f"{line}  {phase['detail']}".rstrip())
    if report["state"] != "ready":
        raise CliError(f"{server} is {report['state'].replace('_', ' ')}")
    tools = len(report["tool_names"])
    click.echo(f"{server} speaks {report['protocol_version']} and offers {tools} tools.")


@mcp.command()
@server_argument
@json_option
def tools(server: str, as_json: bool) -> None:
    """List the tools of SERVER."""
    api = current_api()
    pages = list(_pages(api, f"{SERVERS}/{_found(api, server)['id']}/tools"))
    items = [item for page in pages for item in page["items"]]
    rows = (
        [
            item["original_name"],
            "asks" if item["needs_approval"] else "-",
            "quarantined" if item["is_quarantined"] else "offered",
            " ".join(item["description"].split())[:60],
        ]
        for item in items
    )
    print_list({"items": items}, TOOL_COLUMNS, rows, as_json=as_json)
    if not as_json and (dropped := pages[-1].get("dropped_tool_count")):
        reason = "the definitions are invalid, too large or nested too deep"
        click.echo(f"{dropped} more cannot be used: {reason}.", err=True)


@mcp.command()
@server_argument
@click.argument("tool")
@click.argument("arguments", default="{}")
@json_option
def call(server: str, tool: str, arguments: str, as_json: bool) -> None:
    """Call TOOL of SERVER with ARGUMENTS, a JSON object, and print what it answers."""
    api = current_api()
    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise click.UsageError(f"ARGUMENTS is not JSON: {error}") from None
    path = f"{SERVERS}/{_found(api, server)['id']}/tools/call"
    body = {"original_name": tool, "arguments": given}
    result = api.call("POST", path, body, new_key(), needs="outcome", within_s=CALL_S_MAX)
    if as_json:
        echo_foreign(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        for part in result["content"]:
            echo_foreign(part.get("text") or json.dumps(part, ensure_ascii=False))
    if result["outcome"] != "succeeded":
        raise CliError(result["message"] or f"the tool ended with {result['outcome']}")


@mcp.command()
@server_argument
@click.argument("uri", required=False)
@json_option
def resources(server: str, uri: str | None, as_json: bool) -> None:
    """List the resources of SERVER, or print the one at URI."""
    api = current_api()
    path = f"{SERVERS}/{_found(api, server)['id']}/resources"
    print_resources(api, path, uri, as_json=as_json)


@mcp.command()
@server_argument
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT=VALUE]...")
@json_option
def prompts(server: str, name: str | None, arguments: tuple[str, ...], as_json: bool) -> None:
    """List the prompts of SERVER, or print the prompt NAME with its arguments filled in."""
    api = current_api()
    path = f"{SERVERS}/{_found(api, server)['id']}/prompts"
    wanted = None if name is None else {"name": name}
    print_prompts(api, path, wanted, arguments, as_json=as_json)


@mcp.command()
@server_argument
@click.option("--all", "approves_all", is_flag=True, help="Approve all that are quarantined.")
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@click.argument("tool_names", nargs=-1, metavar="[TOOL]...")
def approve(server: str, approves_all: bool, yes: bool, tool_names: tuple[str, ...]) -> None:
    """Print what changed in the definitions of TOOLs, and approve it.

    Without a TOOL and without --all, what changed is printed and nothing is approved.
    """
    api = current_api()
    path = f"{SERVERS}/{_found(api, server)['id']}/tools"
    waiting = waiting_tools(_items(api, path), tool_names)
    for tool in waiting:
        print_change(tool)
    if not tool_names and not approves_all:
        names = " ".join(tool["original_name"] for tool in waiting)
        click.echo(f"Nothing is approved; name tools ({sanitized(names)}) or --all.", err=True)
        return
    if not yes and sys.stdin.isatty():
        click.confirm(f"Approve {len(waiting)}?", abort=True, err=True)
    seen = [{"original_name": each["original_name"], "digest": each["digest"]} for each in waiting]
    api.call("POST", f"{path}/approve", {"tools": seen}, new_key())
    click.echo(f"Approved {len(seen)}.")


@mcp.command()
@server_argument
@click.argument("names", nargs=-1, required=True, metavar="HEADER...")
def values(server: str, names: tuple[str, ...]) -> None:
    """Store one's own values of HEADERs, each a line of standard input."""
    api = current_api()
    lines = sys.stdin.read().splitlines()
    if len(lines) != len(names):
        raise click.UsageError(f"Give {len(names)} lines, one for each header.")
    path = f"{SERVERS}/{_found(api, server)['id']}/me/values"
    api.call("PUT", path, {"values": dict(zip(names, lines, strict=True))}, new_key())
    click.echo("Stored.")


@mcp.command()
@click.option("--server", help="Only of this server.")
@click.option(
    "--user", "user_id", type=USER_ID, metavar="LOGIN", default="", help="Only of this user."
)
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="How many.")
@json_option
def calls(server: str | None, user_id: str, limit: int, as_json: bool) -> None:
    """List calls of tools, the newest first: one's own, and for administrators all."""
    api = current_api()
    query = {"server_id": _found(api, server)["id"]} if server else {}
    query |= {"user_id": user_id} if user_id else {}
    found = [item for item, _ in zip(_items(api, CALLS, query), range(limit), strict=False)]
    if as_json:
        print_json({"items": found})
        return
    names = {"server": "slug", "tool": "original_name"}
    rows = [[str(item[names.get(each, each)] or "-") for each in CALL_COLUMNS] for item in found]
    print_table(CALL_COLUMNS, rows)


@mcp.command()
@server_argument
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser here.")
@click.option(
    "--wait", "wait_s", default=300.0, type=click.FloatRange(0.1, 600.0), show_default=True,
    help="Seconds to wait for the login.",
)  # fmt: skip
def login(server: str, browser: bool, wait_s: float) -> None:
    """Log in at SERVER with a browser, and wait until that is done."""
    api, url = current_api(), find_server(current()).url
    log_in(api, _found(api, server), url, opens_browser=browser, wait_s=wait_s)


@mcp.command()
@server_argument
def logout(server: str) -> None:
    """Give up one's own login at SERVER, also if one may no longer use it."""
    api = current_api()
    log_out(api, own_login(api, server) or _found(api, server), new_key())


@mcp.command()
@json_option
def logins(as_json: bool) -> None:
    """List one's own logins at servers, also at those that one may no longer use."""
    items = own_logins(current_api())
    rows = (
        [item["slug"], item["server_id"], item["status"], "yes" if item["is_usable"] else "no"]
        for item in items
    )
    print_list({"items": items}, LOGIN_COLUMNS, rows, as_json=as_json)


@mcp.command()
@server_argument
def rm(server: str) -> None:
    """Delete SERVER."""
    api = current_api()
    api.call("DELETE", f"{SERVERS}/{_found(api, server)['id']}", None, new_key())
    click.echo(f"Deleted {server}.")


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings and credentials that the options of `add` stand for."""
    if options["default_on"] and options["force_on"]:
        raise click.UsageError("Choose --default-on or --force-on.")
    kinds = ("api_key_stdin", "header_stdin", "oauth")
    if sum(bool(options[kind]) for kind in kinds) > 1:
        raise click.UsageError("Choose --api-key-stdin, --header-stdin or --oauth.")
    if (options["client_id"] or options["client_secret_stdin"]) and not options["oauth"]:
        raise click.UsageError("A client goes with --oauth.")
    settings: dict[str, Any] = {
        "display_name": options["display_name"] or None,
        "description": options["description"] or None,
        "transport": options["transport"],
        "is_enabled": options["enable"],
        "is_required": options["required"],
        "is_trusted": options["trusted"],
        "allow_in_plan_mode": options["plan_mode"],
        "approval_policy": options["approval"],
        "tool_allow_list": list(options["allow"]),
        "tool_deny_list": list(options["deny"]),
        "user_ids": list(options["user_ids"]),
        "group_ids": list(options["group_ids"]),
        "user_values": [{"header": header} for header in options["user_values"]],
    }
    if options["default_on"] or options["force_on"]:
        settings["availability"] = "force_on" if options["force_on"] else "default_on"
    if options["api_key_stdin"]:
        settings |= {"auth_kind": "api_key", "credentials": {"api_key": _secret()}}
    if options["oauth"]:
        settings |= {"auth_kind": "oauth2", "oauth": {"client_id": options["client_id"]}}
    if options["client_secret_stdin"]:
        settings["credentials"] = {"oauth_client_secret": _secret()}
    if options["header_stdin"]:
        headers = {"headers": {options["header_stdin"]: _secret()}}
        settings |= {"auth_kind": "custom_headers", "credentials": {"custom_headers": headers}}
    return settings


def _secret() -> str:
    """Return a secret from standard input: arguments of processes are visible to others."""
    return sys.stdin.readline().rstrip("\n")


def _found(api: Api, server: str) -> Any:
    """Return the server that a slug or an id names."""
    for item in _items(api, SERVERS):
        if server in (item["slug"], item["id"]):
            return item
    raise CliError(f"there is no MCP server {server}: `parley mcp ls` lists them")


def _items(api: Api, path: str, query: Mapping[str, str] | None = None) -> Iterator[Any]:
    for page in _pages(api, path, query):
        yield from page["items"]


def _pages(api: Api, path: str, query: Mapping[str, str] | None = None) -> Iterator[Any]:
    cursor = None
    while True:
        parameters = {**(query or {}), **({} if cursor is None else {"cursor": cursor})}
        page = api.call(
            "GET", f"{path}?{urlencode(parameters)}", needs="items", within_s=PROBE_S_MAX
        )
        yield page
        cursor = page.get("next_cursor")
        if cursor is None:
            return
