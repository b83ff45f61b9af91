"""`parley hook`: HTTP consumers that get events of chats and decide on some of them."""

from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.errors import CliError
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_list

PATH = "/api/v1/hooks"
COLUMNS = ("id", "name", "url", "events", "tools", "timeout_ms", "fail_policy", "disabled")
LOG_COLUMNS = (
    "created_at",
    "event",
    "tool_name",
    "outcome",
    "http_status",
    "duration_ms",
    "attempts",
    "problem",
    "notice",
    "chat_id",
)
EVENTS = (
    "session_start",
    "user_prompt_submit",
    "pre_tool_use",
    "post_tool_use",
    "pre_compact",
    "post_compact",
    "stop",
)
FAIL_OPEN = "Go on when it fails, instead of failing too."


class NoSuchHook(CliError):
    """No hook has that name or id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no hook {name}; `parley hook ls` shows what there is")
        self.name = name


@click.group(cls=HomeGroup)
def hook() -> None:
    """Send events of chats to HTTP consumers, which may refuse or change them."""


@hook.command()
@json_option
def ls(as_json: bool) -> None:
    """List hooks."""
    _show(COLUMNS, current_api().call("GET", PATH, needs="items"), as_json)


@hook.command()
@click.argument("name")
@click.argument("url")
@click.option(
    "--event", "events", multiple=True, required=True, type=click.Choice(EVENTS),
    help="What it gets; several are allowed.",
)  # fmt: skip
@click.option(
    "--tool", "tools", multiple=True,
    help="Only calls of this tool, in whose name * stands for any text; several are allowed.",
)  # fmt: skip
@click.option("--timeout-ms", type=click.IntRange(100, 5000), default=1500, show_default=True)
@click.option("--fail-open/--fail-closed", default=False, help=FAIL_OPEN)
@json_option
def add(
    name: str,
    url: str,
    events: tuple[str, ...],
    tools: tuple[str, ...],
    timeout_ms: int,
    fail_open: bool,
    as_json: bool,
) -> None:
    """Send events to URL, and print the secret that signs them; it is not shown again."""
    body = {
        "name": name,
        "url": url,
        "events": list(events),
        "tools": list(tools),
        "timeout_ms": timeout_ms,
        "fail_policy": "open" if fail_open else "closed",
    }
    made = current_api().call("POST", PATH, body, new_key(), needs="secret")
    if as_json:
        print_json(made)
        return
    click.echo(f"Created {made['hook']['id']}. Its secret, which is not shown again:")
    click.echo(made["secret"])


@hook.command("set")
@click.argument("name")
@click.option("--enabled/--disabled", default=None, help="Whether it gets events.")
@click.option("--fail-open/--fail-closed", default=None, help=FAIL_OPEN)
@click.option("--fail-policy", type=click.Choice(["closed", "open"]), hidden=True)
@click.option("--url", help="Where events are sent.")
@click.option("--name", "new_name", help="Another name.")
def change(
    name: str,
    enabled: bool | None,
    fail_open: bool | None,
    fail_policy: str | None,
    url: str | None,
    new_name: str | None,
) -> None:
    """Change the hook NAME, which may be its id; its secret stays."""
    if fail_open is not None:
        fail_policy = "open" if fail_open else "closed"
    given = {
        "name": new_name,
        "disabled": None if enabled is None else not enabled,
        "fail_policy": fail_policy,
        "url": url,
    }
    body = {field: value for field, value in given.items() if value is not None}
    if not body:
        raise click.UsageError(
            "Give --enabled, --disabled, --fail-open, --fail-closed, --url or --name."
        )
    api = current_api()
    found = _found(api, name)
    api.call("PATCH", _path(found), body, new_key())
    click.echo(f"Changed {found['name']}.")


@hook.command()
@click.argument("name")
@click.option(
    "--overlap", "overlap_s", type=click.IntRange(0, 604_800), default=86_400, show_default=True,
    help="Seconds in which requests are signed with both secrets; 0 ends the previous one at once.",
)  # fmt: skip
@json_option
def rotate(name: str, overlap_s: int, as_json: bool) -> None:
    """Replace the secret of the hook NAME, and print the new one; it is not shown again."""
    api = current_api()
    path = f"{_path(_found(api, name))}/rotate-secret"
    made = api.call("POST", path, {"overlap_s": overlap_s}, new_key(), needs="secret")
    if as_json:
        print_json(made)
        return
    until = made["hook"].get("previous_secret_until")
    click.echo(f"The previous secret signs as well until {until}." if until else "Replaced.")
    click.echo("The new secret, which is not shown again:")
    click.echo(made["secret"])


@hook.command()
@click.argument("name")
def rm(name: str) -> None:
    """Delete the hook NAME, which may be its id, with its log."""
    api = current_api()
    found = _found(api, name)
    api.call("DELETE", _path(found), None, new_key())
    click.echo(f"Deleted {found['name']}.")


@hook.command()
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> int:
    """Send an event with invented data to the hook NAME, and print how it answered."""
    api = current_api()
    path = f"{_path(_found(api, name))}/test"
    delivery = api.call("POST", path, {}, new_key(), needs="outcome")
    _show(LOG_COLUMNS, {"items": [delivery]}, as_json)
    return 1 if delivery["outcome"] == "failed" else 0


@hook.command()
@click.argument("name")
@click.option("-n", "count", default=20, type=click.IntRange(1, 200), help="How many.")
@json_option
def log(name: str, count: int, as_json: bool) -> None:
    """Show the newest deliveries to the hook NAME; the last 200 are kept."""
    api = current_api()
    path = f"{_path(_found(api, name))}/deliveries?limit={count}"
    _show(LOG_COLUMNS, api.call("GET", path, needs="items"), as_json)


def _found(api: Api, name: str) -> Any:
    items = api.call("GET", PATH, needs="items")["items"]
    found = [each for each in items if name in (each["id"], each["name"])]
    if not found:
        raise NoSuchHook(name)
    if len(found) > 1:
        raise click.UsageError(f"{len(found)} hooks are called {name}: give the id of one.")
    return found[0]


def _path(found: Any) -> str:
    return f"{PATH}/{quote(found['id'], safe='')}"


def _show(columns: tuple[str, ...], listed: Any, as_json: bool) -> None:
    rows = ([_cell(item.get(column)) for column in columns] for item in listed["items"])
    print_list(listed, columns, rows, as_json=as_json)


def _cell(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(value) or "-"
        case _:
            return str(value or "-")
