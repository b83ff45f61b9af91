"""`parley workspace`: creates, stops and removes workspaces."""

from collections.abc import Iterable, Iterator
from math import inf
from time import monotonic, sleep  # noqa: TID251 (a command waits in the time of its caller)
from typing import Any

import click

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.events import follow
from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.api.server import find_server
from parley.cli.chats.id_prefixes import CHAT_ID, item_named
from parley.cli.chats.id_prefixes import WORKSPACES as PATH
from parley.cli.chats.listing import chat_path
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_list
from parley.cli.workspaces.terminal import Detached, Exited, RemoteShell

TEMPLATES = "/api/v1/templates"
COLUMNS = ("id", "name", "kind", "state", "deadline", "last_used_at")
TEMPLATE_COLUMNS = ("id", "name", "kind", "description")
LOOK_S = 0.5
WAIT_S_MAX = 660.0
SETTLING = ("pending", "preparing", "stopping")
LIVE = ("pending", "preparing", "ready", "busy", "stopping")


class WorkspaceFailed(CliError):
    """A workspace did not reach the requested state."""

    def __init__(self, workspace: Any) -> None:
        failure = workspace.get("failure") or {}
        why = failure.get("message") or f"it is {workspace['state']}"
        super().__init__(f"the workspace {workspace['name']} cannot be used: {why}")
        self.workspace_id = workspace["id"]
        self.state = workspace["state"]


@click.group(cls=HomeGroup)
def workspace() -> None:
    """Make, list, stop and remove workspaces."""


@workspace.command()
@click.option("-a", "--all", "is_all", is_flag=True, help="Stopped and failed ones too.")
@json_option
def ls(is_all: bool, as_json: bool) -> None:
    """List workspaces: live ones first, then by their last use."""
    _show(
        list(listed(current_api(), PATH, {"state": () if is_all else LIVE})),
        COLUMNS,
        as_json=as_json,
    )


@workspace.command()
@json_option
def templates(as_json: bool) -> None:
    """List what workspaces can be made from, best first."""
    _show(list(listed(current_api(), TEMPLATES)), TEMPLATE_COLUMNS, as_json=as_json)


@workspace.command()
@click.argument("template")
@click.option("-n", "--name", default="", help="Its name; left out: one is made.")
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE",
    help="A value of a parameter of the template; may be given several times.",
)  # fmt: skip
@click.option(
    "--chat", default="", type=CHAT_ID, metavar="CHAT", help="A chat that shall work in it."
)
@click.option("--ttl", "ttl_minutes", type=click.IntRange(min=0), help="Minutes; 0 for no end.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is ready.")
@json_option
def create(
    template: str,
    name: str,
    parameters: tuple[str, ...],
    chat: str,
    ttl_minutes: int | None,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Make a workspace of TEMPLATE, by its name or id, and wait until it is ready."""
    api = current_api()
    body: dict[str, Any] = {
        "template_id": item_named(api, TEMPLATES, "template", template)["id"],
        "name": name,
        "parameters": dict(map(_pair, parameters)),
        "chat_id": chat,
    }
    if ttl_minutes is not None:
        body["ttl_ms"] = ttl_minutes * 60_000
    made = api.call("POST", PATH, body, new_key(), needs="state")
    _tell(made if no_wait else _settled(api, made), "ready", as_json=as_json, no_wait=no_wait)


@workspace.command()
@click.argument("name")
@json_option
def start(name: str, as_json: bool) -> None:
    """Start the workspace NAME, or make it again if it failed, and wait until it is ready."""
    api = current_api()
    begun = api.call("POST", f"{_path(api, name)}/start", {}, new_key(), needs="state")
    _tell(_settled(api, begun), "ready", as_json=as_json)


@workspace.command()
@click.argument("name")
@json_option
def stop(name: str, as_json: bool) -> None:
    """Stop the workspace NAME, by its name or id, and keep its files."""
    api = current_api()
    begun = api.call("POST", f"{_path(api, name)}/stop", {}, new_key(), needs="state")
    _tell(_settled(api, begun), "stopped", as_json=as_json)


@workspace.command()
@click.argument("name", required=False)
@click.option(
    "--chat", required=True, type=CHAT_ID, metavar="CHAT", help="The chat that works in it."
)
@click.option("--own-files", is_flag=True, help="Instead of NAME: the directory of the chat.")
def use(name: str | None, chat: str, own_files: bool) -> None:
    """Let a chat work in the workspace NAME from its next turn on; no files are copied."""
    if (name is None) == (not own_files):
        raise click.UsageError("Give NAME or --own-files.")
    api = current_api()
    workspace_id = None if name is None else item_named(api, PATH, "workspace", name)["id"]
    api.call("PATCH", chat_path(chat), {"workspace_id": workspace_id}, new_key(), needs="id")
    click.echo(f"The chat works in {name or 'its own files'}.")


@workspace.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Even if its machine cannot be reached.")
def rm(name: str, force: bool) -> None:
    """Remove the workspace NAME with its files, for good."""
    api = current_api()
    query = "?force=true" if force else ""
    begun = api.call("DELETE", f"{_path(api, name)}{query}", None, new_key(), needs="state")
    settled = _settled(api, begun)
    if settled["state"] != "deleted":
        raise WorkspaceFailed(settled)
    click.echo(f"Removed {settled['name']}.")


@workspace.command()
@click.argument("name")
def watch(name: str) -> None:
    """Follow the workspace NAME: what becomes of it, its setup log, and when it will stop."""
    api = current_api()
    events = follow(api, f"{_path(api, name)}/events", deadline=inf, pause=sleep)
    for line in event_lines(event.data for event in events):
        click.echo(line)


@workspace.command()
@click.argument("name")
@click.option(
    "-w", "--workdir", default="", metavar="DIR", help="Where to start; left out: the root."
)
@click.option("--attach", default="", metavar="PROCESS", help="Go on with a shell that was left.")
def shell(name: str, workdir: str, attach: str) -> int:
    """Open a shell in the workspace NAME; its exit code is that of this command.

    Ctrl-] leaves the shell, which goes on; --attach comes back to it.
    """
    invocation = current()
    server = find_server(invocation)
    api = Api(server)
    found = item_named(api, PATH, "workspace", name)
    if found["state"] == "stopped":
        click.echo(f"Starting {found['name']}.", err=True)
        found = api.call("POST", f"{PATH}/{found['id']}/start", {}, new_key(), needs="state")
    found = _settled(api, found)
    if found["state"] not in ("ready", "busy"):
        raise WorkspaceFailed(found)
    path = f"{PATH}/{found['id']}"
    match RemoteShell(server, path, sleep, process_id=attach, workdir=workdir).run():
        case Exited(code):
            return code
        case Detached(process_id):
            again = invocation.hint(f"workspace shell {name} --attach {process_id}")
            click.echo(f"\nThe shell goes on; come back with: {again}", err=True)
            return 0


def _path(api: Api, name: str) -> str:
    return f"{PATH}/{item_named(api, PATH, 'workspace', name)['id']}"


def _settled(api: Api, workspace: Any) -> Any:
    """Wait until no operation on a workspace is in progress."""
    until_s = monotonic() + WAIT_S_MAX
    while workspace["state"] in SETTLING and monotonic() < until_s:
        sleep(LOOK_S)
        try:
            workspace = api.call("GET", f"{PATH}/{workspace['id']}", needs="state")
        except ApiRefused as refused:
            if refused.status != 404:
                raise
            return {**workspace, "state": "deleted"}
    return workspace


def _tell(workspace: Any, wanted: str, *, as_json: bool, no_wait: bool = False) -> None:
    if as_json:
        print_json(workspace)
    is_well = no_wait or workspace["state"] in (wanted, "busy" if wanted == "ready" else wanted)
    if not is_well:
        raise WorkspaceFailed(workspace)
    if not as_json:
        click.echo(f"{workspace['name']} is {workspace['state']} ({workspace['id']}).")


def _show(items: list[Any], columns: tuple[str, ...], *, as_json: bool) -> None:
    rows = ([_cell(item.get(column)) for column in columns] for item in items)
    print_list({"items": items}, columns, rows, as_json=as_json)


def _pair(given: str) -> tuple[str, str]:
    name, separator, value = given.partition("=")
    if not separator:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE")
    return name, value


def _cell(value: Any) -> str:
    return "-" if value in (None, "") else str(value)


def event_lines(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each change, setup log line and warning, until the workspace is deleted.

    A stream that broke and was reopened begins again; lines are not yielded twice.
    """
    said, epoch, line = "", 0, 0
    for event in events:
        match event.get("type"):
            case "workspace":
                workspace = event["workspace"]
                if workspace["epoch"] != epoch:
                    epoch, line = workspace["epoch"], 0
                if (says := _state(workspace)) != said:
                    said = says
                    yield says
                if workspace["state"] == "deleted":
                    return
            case "log_line" if event["log_line"]["sequence"] > line:
                line = event["log_line"]["sequence"]
                yield f"  {event['log_line']['text']}"
            case "autostop_warning":
                deadline = event["autostop_warning"]["deadline"]
                yield f"It stops by itself at {deadline} unless something is done in it."


def _state(workspace: dict[str, Any]) -> str:
    failure = workspace.get("failure")
    why = f": {failure['message']}" if failure else ""
    return f"{workspace['name']} is {workspace['state']}{why}"
