"""`parley mcp set`: changes settings of an MCP server."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from parley.cli.chats.id_prefixes import GROUP_ID, USER_ID

#: Options whose value is that of the setting of the same name.
PLAIN = (
    "display_name",
    "description",
    "url",
    "transport",
    "availability",
    "approval_policy",
    "pin_policy",
    "tool_search",
    "is_enabled",
    "is_required",
    "is_trusted",
    "is_stateful",
    "allow_in_plan_mode",
)
LISTS = ("tool_allow_list", "tool_deny_list", "user_ids", "group_ids")

_CHANGES = (
    click.option("--name", "display_name", help="Name to show."),
    click.option("--description", help="What it is for."),
    click.option(
        "--url",
        help="Where it is reached; values of users and approvals are deleted. Another host needs "
        "--credentials-stdin if credentials are stored.",
    ),
    click.option(
        "--credentials-stdin",
        is_flag=True,
        help="Read its API key, OAuth client secret or headers (NAME: VALUE, one on a line) from "
        "standard input.",
    ),
    click.option(
        "--transport", type=click.Choice(["streamable_http", "sse"]), help="How to talk to it."
    ),
    click.option("--enable/--disable", "is_enabled", default=None, help="Switch it on or off."),
    click.option(
        "--availability",
        type=click.Choice(["force_on", "default_on", "default_off"]),
        help="Which chats use it.",
    ),
    click.option(
        "--required/--optional",
        "is_required",
        default=None,
        help="Whether turns fail when it cannot be reached.",
    ),
    click.option(
        "--approval",
        "approval_policy",
        type=click.Choice(["never", "destructive", "always"]),
        help="When a person has to approve a call.",
    ),
    click.option(
        "--trusted/--untrusted",
        "is_trusted",
        default=None,
        help="Whether what it says about effects of its tools is believed.",
    ),
    click.option(
        "--plan-mode/--no-plan-mode",
        "allow_in_plan_mode",
        default=None,
        help="Whether chats that plan may use it.",
    ),
    click.option(
        "--stateful/--stateless",
        "is_stateful",
        default=None,
        help="Whether chats of one user get sessions of their own.",
    ),
    click.option(
        "--pins",
        "pin_policy",
        type=click.Choice(["quarantine", "off"]),
        help="What happens to tools whose definitions change.",
    ),
    click.option(
        "--tool-search",
        type=click.Choice(["automatic", "always", "never"]),
        help="When the model searches for its tools.",
    ),
    click.option(
        "--allow", "tool_allow_list", multiple=True, metavar="TOOL", help="Offer only these tools."
    ),
    click.option("--allow-all", is_flag=True, help="Offer all tools that are not denied."),
    click.option(
        "--deny", "tool_deny_list", multiple=True, metavar="TOOL", help="Never offer these tools."
    ),
    click.option("--deny-none", is_flag=True, help="Deny no tools."),
    click.option(
        "--user", "user_ids", multiple=True, type=USER_ID, metavar="LOGIN", help="Who may use it."
    ),
    click.option(
        "--group",
        "group_ids",
        multiple=True,
        type=GROUP_ID,
        metavar="GROUP",
        help="Who may use it.",
    ),
    click.option("--everyone", is_flag=True, help="Everyone may use it."),
    click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="NAME=NUMBER",
        help="A limit, for example call_timeout_ms=60000; 0 for its default.",
    ),
)


def change_options(command: Any) -> Any:
    """Give a command an option for each setting that can be changed."""
    for option in reversed(_CHANGES):
        command = option(command)
    return command


def changes_of(
    options: Mapping[str, Any], server: Mapping[str, Any], lines: Sequence[str]
) -> dict[str, Any]:
    """Return what to change of a server, with lists as a whole.

    Args:
        options: The options of the command.
        server: The server as it is stored.
        lines: The lines of standard input, if credentials are read from there.

    Raises:
        UsageError: Nothing is to be changed, or options contradict each other.
    """
    changes = {name: options[name] for name in PLAIN if options[name] is not None}
    changes |= {name: list(options[name]) for name in LISTS if options[name]}
    for flag, names in (
        ("allow_all", ("tool_allow_list",)),
        ("deny_none", ("tool_deny_list",)),
        ("everyone", ("user_ids", "group_ids")),
    ):
        if options[flag]:
            if any(name in changes for name in names):
                raise click.UsageError(f"--{flag.replace('_', '-')} contradicts other options.")
            changes |= {name: [] for name in names}
    if options["limits"]:
        changes["limits"] = {**(server.get("limits") or {}), **_limits(options["limits"])}
    if options["credentials_stdin"]:
        changes["credentials"] = _credentials(server["auth_kind"], lines)
    if not changes:
        raise click.UsageError("Name at least one change; --help lists them.")
    return changes


def print_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Print each setting that is another one now."""
    for name in sorted(after):
        if name in ("version", "updated_at", "health") or before.get(name) == after[name]:
            continue
        was, now = (json.dumps(each.get(name), ensure_ascii=False) for each in (before, after))
        click.echo(f"{name}: {was} -> {now}")


def _credentials(auth_kind: str, lines: Sequence[str]) -> dict[str, Any]:
    given = [line for line in lines if line.strip()]
    if auth_kind == "custom_headers":
        if not given or any(":" not in line for line in given):
            raise click.UsageError("Give a line NAME: VALUE for each header.")
        pairs = (line.split(":", 1) for line in given)
        return {
            "custom_headers": {"headers": {name.strip(): value.strip() for name, value in pairs}}
        }
    secrets = {"api_key": "api_key", "oauth2": "oauth_client_secret"}
    if auth_kind not in secrets:
        raise click.UsageError("This server has no credentials.")
    if len(given) != 1:
        raise click.UsageError("Give the credentials as one line.")
    return {secrets[auth_kind]: given[0]}


def _limits(given: tuple[str, ...]) -> dict[str, int]:
    limits = {}
    for each in given:
        name, _, number = each.partition("=")
        if not number.isdecimal():
            raise click.UsageError(f"{each!r} is not NAME=NUMBER, with a whole number of 0 or more")
        limits[name] = int(number)
    return limits
