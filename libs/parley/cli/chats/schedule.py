"""`parley schedule`: messages that are sent at a time or repeatedly."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import CHOSEN_CHAT_ID, SCHEDULE_ID, WORKSPACE_ID
from parley.cli.chats.id_prefixes import SCHEDULES as PATH
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_list, print_table, sanitized

COLUMNS = ("id", "state", "when", "next_run_at", "last_run", "name")
RUNS = ("planned_at", "outcome", "chat_id", "error")
SHOWN = (
    "name",
    "state",
    "pause_reason",
    "chat_id",
    "workspace_id",
    "missed_runs",
    "ends_at",
    "next_run_at",
)


@click.group(cls=HomeGroup)
def schedule() -> None:
    """Send messages at a time or repeatedly."""


@schedule.command()
@click.argument("text")
@click.option("--cron", help='Repeatedly, such as "30 9 * * mon-fri".')
@click.option("--zone", "time_zone", help="The time zone of --cron, such as Europe/Berlin; UTC.")
@click.option("--at", help="Once, such as 2026-12-24T18:00; local time without an offset.")
@click.option(
    "--chat", "chat_id", type=CHOSEN_CHAT_ID, metavar="CHAT",
    help="Send into this chat; a new one for each run otherwise.",
)  # fmt: skip
@click.option("--name", help="What to call it; also the title of new chats.")
@click.option("--model", "model_id", help="The model that answers.")
@click.option("--plan", is_flag=True, help="New chats are in plan mode.")
@click.option(
    "--workspace", "workspace_id", type=WORKSPACE_ID, metavar="WORKSPACE",
    help="The workspace of new chats.",
)  # fmt: skip
@click.option("--unattended", is_flag=True, help="New chats refuse what they would ask a person.")
@click.option(
    "--missed",
    "missed_runs",
    type=click.Choice(["skip", "run_once"]),
    help="What happens with runs that were missed; skip.",
)
@click.option("--until", "ends_at", help="No runs after this time.")
@click.option("--runs", "runs_max", type=click.IntRange(min=1), help="So many runs at most.")
@json_option
def add(
    text: str, at: str | None, ends_at: str | None, plan: bool, as_json: bool, **given: Any
) -> None:
    """Send TEXT at a time or repeatedly."""
    if (at is None) == (given["cron"] is None):
        raise click.UsageError("Give either --cron or --at.")
    body = {name: value for name, value in given.items() if value}
    body |= {"text": text} | ({"mode": "plan"} if plan else {})
    for name, value in (("at", at), ("ends_at", ends_at)):
        if value is not None:
            body[name] = time_of(value)
    made = current_api().call("POST", PATH, body, new_key(), needs="id")
    if as_json:
        print_json(made)
    else:
        click.echo(f"Made {made['id']}; it runs next at {made['next_run_at']}.")


@schedule.command()
@json_option
def ls(as_json: bool) -> None:
    """List your schedules."""
    found = current_api().call("GET", f"{PATH}?limit=200", needs="items")
    rows = (
        (
            each["id"],
            each["state"],
            when_of(each),
            each["next_run_at"] or "-",
            (each["last_run"] or {}).get("outcome", "-"),
            sanitized(each["name"] or each["text"][:40]),
        )
        for each in found["items"]
    )
    print_list(found, COLUMNS, rows, as_json=as_json)


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE", type=SCHEDULE_ID)
@json_option
def show(schedule_id: str, as_json: bool) -> None:
    """Print the schedule SCHEDULE with its newest runs."""
    api, path = current_api(), _path(schedule_id)
    found = api.call("GET", path, needs="id")
    runs = api.call("GET", f"{path}/runs", needs="items")["items"]
    if as_json:
        print_json({**found, "runs": runs})
        return
    click.echo(f"{found['id']}: {when_of(found)}")
    for name in SHOWN:
        if found[name]:
            click.echo(f"{name}: {sanitized(str(found[name]))}")
    click.echo(f"runs: {found['runs_count']}\n\n{sanitized(found['text'])}\n")
    rows = [[sanitized(str(run[name] or "-")) for name in RUNS] for run in runs]
    print_table(RUNS, rows)


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE", type=SCHEDULE_ID)
@click.option("--text", help="Another text to send.")
@click.option("--cron", help='Repeatedly, such as "30 9 * * mon-fri"; in place of --at.')
@click.option("--zone", "time_zone", help="The time zone of --cron; empty for UTC.")
@click.option("--at", help="Once, such as 2026-12-24T18:00; in place of --cron.")
@click.option(
    "--chat", "chat_id", type=CHOSEN_CHAT_ID, metavar="CHAT",
    help="Send into this chat; empty for a new one for each run.",
)  # fmt: skip
@click.option("--name", help="What to call it.")
@click.option("--model", "model_id", help="The model that answers; empty for the default.")
@click.option(
    "--workspace", "workspace_id", type=WORKSPACE_ID, metavar="WORKSPACE",
    help="The workspace of new chats; empty for none.",
)  # fmt: skip
@click.option("--missed", "missed_runs", type=click.Choice(["skip", "run_once"]))
@click.option("--until", "ends_at", help="No runs after this time; empty for no such time.")
@click.option("--runs", "runs_max", type=click.IntRange(min=0), help="Runs at most; 0 for any.")
@json_option
def edit(schedule_id: str, as_json: bool, **given: Any) -> None:
    """Change SCHEDULE; what is not given stays, unless somebody changed it meanwhile."""
    body = edit_of(given)
    if not body:
        raise click.UsageError("Give at least one option to change.")
    api, path = current_api(), _path(schedule_id)
    _, headers = api.exchange("GET", path, needs="id")
    versioned = {**new_key(), "If-Match": headers["ETag"]}
    found = api.call("PATCH", path, body, versioned, needs="id")
    if as_json:
        print_json(found)
    else:
        click.echo(f"Changed; it is {found['state']}, next at {found['next_run_at'] or '-'}.")


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE", type=SCHEDULE_ID)
def pause(schedule_id: str) -> None:
    """Let SCHEDULE not run until it is resumed."""
    found = current_api().call("POST", f"{_path(schedule_id)}/pause", {}, new_key(), needs="state")
    click.echo(f"It is {found['state']}.")


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE", type=SCHEDULE_ID)
def resume(schedule_id: str) -> None:
    """Let SCHEDULE run again, from its next time on."""
    found = current_api().call("POST", f"{_path(schedule_id)}/resume", {}, new_key(), needs="state")
    click.echo(f"It runs next at {found['next_run_at']}.")


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE", type=SCHEDULE_ID)
def rm(schedule_id: str) -> None:
    """Delete SCHEDULE and its runs; their chats stay."""
    current_api().call("DELETE", _path(schedule_id), None, new_key())
    click.echo(f"Deleted {sanitized(schedule_id)}.")


def edit_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a change; an empty text removes what may be absent."""
    body = {name: value for name, value in given.items() if value is not None}
    for name in ("at", "ends_at"):
        if body.get(name):
            body[name] = time_of(body[name])
    removable = ("at", "cron", "time_zone", "chat_id", "model_id", "workspace_id", "ends_at")
    return {
        name: None if value == "" and name in removable else value for name, value in body.items()
    }


def time_of(text: str) -> str:
    """Return a time as the API takes it; without an offset it is local time.

    Raises:
        click.UsageError: It is no time.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat().replace("+00:00", "Z")
    except ValueError:
        raise click.UsageError(f"{text} is not a time such as 2026-12-24T18:00.") from None


def when_of(found: dict[str, Any]) -> str:
    """Return when a schedule runs, in a few words."""
    if found["cron"]:
        return sanitized(f"{found['cron']} {found['time_zone'] or 'UTC'}")
    return str(found["at"])


def _path(schedule_id: str) -> str:
    return f"{PATH}/{quote(schedule_id, safe='')}"
