"""`parley goal`: chats that go on until a check passes or a judge agrees, within a budget."""

from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, sanitized

MICROS = 1_000_000


@click.group(cls=HomeGroup)
def goal() -> None:
    """Let a chat go on until a check passes."""


@goal.command(name="set")
@click.argument("chat_id", type=CHAT_ID)
@click.argument("text")
@click.option("--check", default="", help="Command that ends with 0 when the goal is reached.")
@click.option("--judge", help="Model that says whether it is reached, after the check if any.")
@click.option("--turns", type=click.IntRange(1, 1000), default=20, help="Turns at most; 20.")
@click.option("--minutes", type=click.IntRange(1, 43_200), default=60, help="Minutes at most; 60.")
@click.option("--dollars", type=click.FloatRange(min=0), default=0.0, help="US dollars at most.")
@json_option
def set_goal(
    chat_id: str,
    text: str,
    check: str,
    judge: str | None,
    turns: int,
    minutes: int,
    dollars: float,
    as_json: bool,
) -> None:
    """Let CHAT_ID work on TEXT until the check passes in its workspace, or the judge agrees."""
    if not check and not judge:
        raise click.UsageError("Give --check or --judge, or both.")
    body: dict[str, Any] = {
        "text": text,
        "check_command": check,
        "turns_max": turns,
        "seconds_max": minutes * 60,
        "cost_max_micros": round(dollars * MICROS),
        **({"judge_model_id": judge} if judge else {}),
    }
    _tell(current_api().call("PUT", _path(chat_id), body, new_key(), needs="state"), as_json)


@goal.command()
@click.argument("chat_id", type=CHAT_ID)
@json_option
def show(chat_id: str, as_json: bool) -> None:
    """Print the goal of CHAT_ID and how far it is."""
    _tell(current_api().call("GET", _path(chat_id), needs="state"), as_json)


@goal.command()
@click.argument("chat_id", type=CHAT_ID)
def pause(chat_id: str) -> int:
    """Let CHAT_ID not go on until its goal is resumed."""
    return _changed(chat_id, "pause", "paused")


@goal.command()
@click.argument("chat_id", type=CHAT_ID)
def resume(chat_id: str) -> int:
    """Let CHAT_ID go on, with the budget that is left."""
    return _changed(chat_id, "resume", "active")


@goal.command()
@click.argument("chat_id", type=CHAT_ID)
def end(chat_id: str) -> None:
    """Remove the goal of CHAT_ID; a turn that runs goes on."""
    current_api().call("DELETE", _path(chat_id), None, new_key())
    click.echo("The goal is ended.")


def _changed(chat_id: str, verb: str, wanted: str) -> int:
    """Pause or resume a goal, and print it; return 1 if it is over and stays as it is."""
    found = current_api().call("POST", f"{_path(chat_id)}/{verb}", {}, new_key(), needs="state")
    _tell(found)
    if found["state"] == wanted:
        return 0
    click.echo(f"The goal is {found['state']}, so there is nothing to {verb}.", err=True)
    return 1


def lines_of(found: dict[str, Any]) -> list[str]:
    """Return how far a goal is, in a few lines."""
    reason = f": {found['reason']}" if found["reason"] else ""
    spent = found["cost_micros"] / MICROS
    lines = [
        f"{found['state']}{reason}",
        f"{found['turns_count']} of {found['turns_max']} turns, {spent:.2f} US dollars",
    ]
    if found["check_command"]:
        lines.append(f"check: {found['check_command']}")
    if found["judge_model_id"]:
        lines.append(f"judge: {found['judge_model_id']}")
    return [*lines, *(found[name] for name in ("check_output", "verdict") if found[name])]


def _tell(found: dict[str, Any], as_json: bool = False) -> None:
    if as_json:
        print_json(found)
        return
    for line in lines_of(found):
        click.echo(sanitized(line))


def _path(chat_id: str) -> str:
    return f"/api/v1/chats/{quote(chat_id, safe='')}/goal"
