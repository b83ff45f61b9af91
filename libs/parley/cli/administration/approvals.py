"""`parley approvals`: rules that let tool calls run, ask a person first, or refuse them."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list

NAME = "approval-rules"
COLUMNS = ("id", "effect", "tool", "command", "arguments", "server_id", "modes", "reason")
MODES = ("ordinary", "plan", "explore")
NOT_FOUND = "RESOURCE_NOT_FOUND"

everyone_option = click.option(
    "--everyone", is_flag=True, help="Rules of the installation; administrators change them."
)
chat_option = click.option("--chat", type=CHAT_ID, metavar="CHAT_ID", help="Rules of this chat.")


@click.group(cls=HomeGroup)
def approvals() -> None:
    """Let tool calls run, ask a person first, or refuse them."""


@approvals.command()
@everyone_option
@chat_option
@json_option
def ls(everyone: bool, chat: str | None, as_json: bool) -> None:
    """List rules: one's own, or those of the installation or a chat."""
    items = list(listed(current_api(), _path(everyone, chat)))
    rows = ([_cell(item, column) for column in COLUMNS] for item in items)
    print_list({"items": items}, COLUMNS, rows, as_json=as_json)


@approvals.command()
@click.argument("effect", type=click.Choice(["allow", "ask", "deny"]))
@click.argument("tool")
@everyone_option
@chat_option
@click.option("--command", help='A shell command, for example "git push *".')
@click.option(
    "--argument", "arguments", multiple=True, metavar="NAME=PATTERN",
    help='An argument, for example "path=/etc/*"; several are allowed.',
)  # fmt: skip
@click.option("--server", default="", metavar="SERVER_ID", help="Tools of this MCP server.")
@click.option("--mode", "modes", multiple=True, type=click.Choice(MODES), help="Only in this mode.")
@click.option("--reason", default="", help="Shown to the person who is asked, and to the model.")
@click.option(
    "--rememberable", is_flag=True,
    help="With ask and --everyone: an approval for a chat settles it.",
)  # fmt: skip
@click.option(
    "--after-outside-content", is_flag=True,
    help="With allow: also after content from outside entered the chat.",
)  # fmt: skip
def add(
    effect: str,
    tool: str,
    everyone: bool,
    chat: str | None,
    command: str | None,
    arguments: tuple[str, ...],
    server: str,
    modes: tuple[str, ...],
    reason: str,
    rememberable: bool,
    after_outside_content: bool,
) -> None:
    """Make a rule with this EFFECT for a TOOL, in whose name * stands for any text.

    '*' alone is for every tool.
    """
    if not tool.strip():
        raise click.UsageError("TOOL is empty: write '*' for a rule about every tool.")
    if command is not None and not command.strip():
        raise click.UsageError("--command is empty: without it the rule is for every call.")
    body = {
        "effect": effect,
        "tool": tool,
        "command": command,
        "arguments": _patterns(arguments),
        "server_id": server or None,
        "modes": list(modes),
        "reason": reason or None,
        "rememberable": rememberable,
        "after_outside_content": after_outside_content,
    }
    made = current_api().call("POST", _path(everyone, chat), body, new_key(), needs="id")
    click.echo(made["id"])


@approvals.command()
@click.argument("rule_id")
@everyone_option
@chat_option
def rm(rule_id: str, everyone: bool, chat: str | None) -> None:
    """Delete the rule RULE_ID."""
    api, path = current_api(), _path(everyone, chat)
    try:
        api.call("DELETE", f"{path}/{quote(rule_id, safe='')}", None, new_key())
    except ApiRefused as error:
        if error.code != NOT_FOUND or everyone or not _is_of_installation(api, rule_id):
            raise
        hint = current().hint(f"approvals rm {rule_id} --everyone")
        raise CliError(
            f"{rule_id} is a rule of the installation: delete it with `{hint}`"
        ) from error
    click.echo(f"Deleted {rule_id}.")


def _path(everyone: bool, chat: str | None) -> str:
    if everyone and chat:
        raise click.UsageError("Choose --everyone or --chat.")
    if chat:
        return f"/api/v1/chats/{quote(chat, safe='')}/{NAME}"
    return f"/api/v1/{NAME}" if everyone else f"/api/v1/me/{NAME}"


def _is_of_installation(api: Api, rule_id: str) -> bool:
    try:
        found = list(listed(api, _path(everyone=True, chat=None)))
    except ApiRefused:
        return False
    return any(item["id"] == rule_id for item in found)


def _patterns(arguments: Iterable[str]) -> dict[str, str]:
    patterns: dict[str, str] = {}
    for text in arguments:
        name, separator, pattern = text.partition("=")
        if not name or not separator:
            raise click.UsageError(f"{text!r} is not NAME=PATTERN.")
        if name in patterns:
            raise click.UsageError(f"--argument {name} is given twice: make a rule for each.")
        patterns[name] = pattern
    return patterns


def _cell(item: dict[str, Any], column: str) -> str:
    value = item.get(column)
    if column == "command" and item.get("remembered"):
        return "(remembered)"
    if isinstance(value, dict):
        return ", ".join(f"{name}={pattern}" for name, pattern in value.items()) or "-"
    text = ", ".join(value) if isinstance(value, list) else str(value or "")
    return text or "-"
