"""`parley actions` lists what chats wait for, `parley answer` answers it."""

import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api
from parley.cli.chats.action_answers import GivenOptions, ask, how_to_answer, send_answer
from parley.cli.chats.actions import (
    CLIENT_TOOL,
    action_path,
    list_actions,
    list_unknown_outcomes,
    open_actions,
    outcome_row_of,
    row_of,
    summary_of,
)
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path, one_line, status_word
from parley.cli.chats.turn_output import Patience
from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.invocation import current
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, print_table

COLUMNS = ("chat", "action", "title", "kind", "asked", "reason", "since", "until")
OUTCOME_COLUMNS = ("chat", "message", "title", "call", "since")


@click.command(cls=HomeCommand)
@click.option(
    "--unknown-outcomes", "are_unknown", is_flag=True,
    help="List the calls instead of which it is not known whether they ran, the newest first.",
)  # fmt: skip
@json_option
def actions(are_unknown: bool, as_json: bool) -> None:
    """List what my chats wait for, the longest first; `parley answer` answers it."""
    if are_unknown:
        _list_unknown_outcomes(as_json=as_json)
        return
    found = list_actions(current_api())
    if as_json:
        print_json({"items": found})
    elif found:
        print_table(COLUMNS, [row_of(action) for action in found])
    else:
        click.echo("No chat waits.", err=True)


def _list_unknown_outcomes(*, as_json: bool) -> None:
    found = list_unknown_outcomes(current_api())
    if as_json:
        print_json({"items": found})
    elif found:
        print_table(OUTCOME_COLUMNS, [outcome_row_of(each) for each in found])
    else:
        click.echo("Of all calls it is known whether they ran.", err=True)


#: The first line tells click to keep the lines as they are.
OPTIONS_BY_KIND = """\b
a question        --option or --text, once for each question
a plan            --accept, --refuse with a --remark, or --plan FILE
approval, loop    --accept (with --remember for the whole chat), or --refuse
a form of a call  --field for each of its fields, or --refuse
a login           --accept once it is done, or --refuse
"""


@click.command(cls=HomeCommand, epilog=OPTIONS_BY_KIND)
@click.argument("chat_id", metavar="[CHAT]", type=CHAT_ID, required=False)
@click.argument("action_id", metavar="[ACTION]", required=False)
@click.option("--accept", is_flag=True, help="Accept the plan, allow it, or say it is done.")
@click.option("--refuse", is_flag=True, help="Refuse the plan, the call, or what it asks.")
@click.option("--remark", default="", metavar="TEXT", help="A remark for the model.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE",
    help="Accept the plan as it is in FILE; `-` reads it from standard input.",
)  # fmt: skip
@click.option(
    "--option", "options", multiple=True, metavar="N|LABEL",
    help="The chosen option; once for each question. Several of one question: 1,3.",
)  # fmt: skip
@click.option("--text", default="", metavar="TEXT", help="The answer in my own words.")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME=VALUE",
    help="A field of the form that a running call asks for; once for each.",
)  # fmt: skip
@click.option("--remember", is_flag=True, help="Allow the same call of this chat from now on.")
@click.option("--json", "as_json", is_flag=True, help="Print the answered action as JSON.")
def answer(
    chat_id: str | None,
    action_id: str | None,
    accept: bool,
    refuse: bool,
    remark: str,
    plan_file: Path | None,
    options: tuple[str, ...],
    text: str,
    fields: tuple[str, ...],
    remember: bool,
    as_json: bool,
) -> None:
    """Answer what CHAT waits for; the last answer lets its turn go on.

    CHAT and ACTION are ids that `parley actions` prints; without them it is the only action that
    waits. Without options it asks on the terminal.
    """
    if accept and refuse:
        raise click.UsageError("Choose --accept or --refuse.")
    decision = "accept" if accept else "refuse" if refuse else ""
    plan = "" if plan_file is None else _read(plan_file)
    given = GivenOptions(decision, remark, plan, options, text, remember, fields)
    api = current_api()
    action = _chosen(api, chat_id, action_id)
    if not given.is_empty:
        body = given.body(action)
    elif sys.stdin.isatty():
        body = ask(action)
    else:
        raise ConfigurationProblem(f"the answer is missing: give {how_to_answer(action)}")
    patience = Patience(None, float("inf"), threading.Event().wait)
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    answered = send_answer(api, action, body, patience, key=key)
    if as_json:
        print_json(answered)
        return
    follow = current().hint(f"tail {action['chat_id']}")
    click.echo(f"Answered; the chat is {status_word(answered['chat'])}. `{follow}` follows it.")


def _chosen(api: Api, chat_id: str | None, action_id: str | None) -> dict[str, Any]:
    """Return the action to answer.

    Raises:
        CliError: None waits, or several do and none is named, or the named one is over.
    """
    if chat_id is not None and action_id is not None:
        found: dict[str, Any] = api.call("GET", action_path(chat_id, action_id), needs="state")
        return _answerable(found)
    if chat_id is None:
        waiting = list_actions(api)
    else:
        waiting = open_actions(api.call("GET", chat_path(chat_id), needs="id"))
    actions = [action for action in waiting if action.get("kind") != CLIENT_TOOL]
    if len(actions) == 1:
        return actions[0]
    if not actions:
        if chat_id is None:
            raise CliError("no chat waits for an answer")
        what = "tools of a program only" if waiting else "nothing"
        raise CliError(f"chat {chat_id} waits for {what}")
    listed = "".join(
        f"\n  {action['chat_id']} {action['id']}  {one_line(summary_of(action))}"
        for action in actions
    )
    raise ConfigurationProblem(f"{len(actions)} actions wait, name one of them:{listed}")


def _answerable(action: dict[str, Any]) -> dict[str, Any]:
    if action.get("kind") == CLIENT_TOOL:
        raise CliError("this waits for the program that declared the tool, not for a person")
    if action["state"] != "open":
        at = str(action.get("ended_at") or "")[:19].replace("T", " ")
        raise CliError(f"this is {action['state']} since {at}: it cannot be answered any more")
    return action


def _read(file: Path) -> str:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationProblem(f"{file} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigurationProblem(f"{file} is no text ({error}): name another") from error
    if not text.strip():
        raise ConfigurationProblem(f"{file} is empty: a plan has text")
    return text
