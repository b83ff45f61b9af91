"""`parley revert` and `parley fork`: go back in a chat, or copy it up to a message."""

import json
import threading
import uuid
from time import monotonic
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.requests import current_api, listed
from parley.cli.api.retries import post
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.errors import CliError, TimedOut
from parley.cli.invocation import current
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, print_table, sanitized

LOOK_S = 0.2
WAIT_S = 300.0
SHOWN_PATHS = 20
SHOWN_TEXT = 100
COLUMNS = ("revert", "kind", "message", "state", "done", "undoable")
#: The code of a revert after which the history was changed, as by undoing it.
SUPERSEDED = "REVERT_SUPERSEDED"


class MessageNumber(click.IntRange):
    """The number of a message in a chat."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or refuse what is none."""
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no number of a message: see `parley show CHAT`", param, ctx)
        return number


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.argument("message_id", metavar="[MESSAGE]", type=MessageNumber(min=1), required=False)
@click.option("--files", is_flag=True, help="Also restore the files that the chat changed since.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be deleted and restored.")
@click.option("--undo", "undone_id", metavar="REVERT", help="Undo this revert or edit instead.")
@click.option("--list", "is_list", is_flag=True, help="Only list the reverts of the chat.")
@json_option
def revert(
    chat_id: str,
    message_id: int | None,
    files: bool,
    dry_run: bool,
    undone_id: str | None,
    is_list: bool,
    as_json: bool,
) -> None:
    """Go back in the chat CHAT to before MESSAGE, one of yours, and delete everything after it.

    MESSAGE is its number, which `parley show CHAT` prints.
    """
    if [message_id is None, undone_id is None, not is_list].count(False) != 1:
        raise click.UsageError("Name either a message, or a revert with --undo, or give --list.")
    api = current_api()
    if is_list:
        _show_list(_listed(api, chat_id), as_json=as_json)
        return
    if undone_id is not None:
        named = quote(undone_id, safe="")
        path, body = f"{chat_path(chat_id)}/reverts/{named}/undo", dict[str, Any]()
    else:
        path = f"{chat_path(chat_id)}/revert"
        body = {"message_id": message_id, "restore_files": files}
        if dry_run or not as_json:
            shown = api.call("POST", f"{path}/preview", body, needs="deleted_messages")
            _show_preview(shown, as_json=as_json)
        if dry_run:
            return
    try:
        done = _done(api, chat_id, path, body)
    except ApiRefused as error:
        if error.code != SUPERSEDED or not _is_undone(api, chat_id, undone_id):
            raise
        raise CliError(f"{undone_id} was undone already; nothing is left to undo") from error
    if as_json:
        print_json(done)
    else:
        _show_done(chat_id, done)


def _done(api: Api, chat_id: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Begin a revert and wait for its end."""
    deadline, pause = monotonic() + WAIT_S, threading.Event().wait
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    late = "the revert did not end in time"
    begun = post(
        api, path, body, key=key, needs="revert", deadline=deadline, pause=pause, late=late
    )
    found: dict[str, Any] = begun["revert"]
    while found["state"] == "running":
        if monotonic() > deadline:
            raise TimedOut(late)
        pause(LOOK_S)
        chat = api.call("GET", chat_path(chat_id), needs="status")
        if chat["status"] == "error":
            problem = chat.get("last_error") or {}
            raise CliError(sanitized(str(problem.get("message") or "the revert failed")))
        found = api.call("GET", f"{chat_path(chat_id)}/reverts/{found['id']}", needs="state")
    return {**found, "dropped_queued_messages": begun.get("dropped_queued_messages", [])}


def _is_undone(api: Api, chat_id: str, revert_id: str | None) -> bool:
    """Return whether another revert of the chat undid this one."""
    undone = (each.get("undone_revert_id") for each in _listed(api, chat_id))
    return revert_id is not None and revert_id in undone


def _listed(api: Api, chat_id: str) -> list[dict[str, Any]]:
    return list(listed(api, f"{chat_path(chat_id)}/reverts"))


def _show_list(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (
            str(each["id"]),
            str(each["kind"]),
            str(each["message_id"]),
            str(each["state"]),
            str(each.get("done_at") or "-")[:19].replace("T", " "),
            "yes" if each.get("undoable") else "no",
        )
        for each in found
    ]
    if rows:
        print_table(COLUMNS, rows)
    else:
        click.echo("The chat was never reverted.", err=True)


def _show_preview(shown: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(shown)
        return
    click.echo(f"Messages to delete: {shown['deleted_messages']}.", err=True)
    if shown.get("dropped_messages"):
        click.echo(f"Queued messages to drop: {shown['dropped_messages']}.", err=True)
    if shown.get("files"):
        _show_files(shown["files"], restored="to restore")


def _show_done(chat_id: str, done: dict[str, Any]) -> None:
    if done.get("files"):
        _show_files(done["files"])
    if dropped := done["dropped_queued_messages"]:
        click.echo(f"Queued messages dropped: {len(dropped)}.", err=True)
        for each in dropped:
            texts = (part.get("text", "") for part in each["content"])
            click.echo(f"  {sanitized(' '.join(' '.join(texts).split()))[:SHOWN_TEXT]}", err=True)
    if done["kind"] == "history":
        undo = current().hint(f"revert {chat_id} --undo {done['id']}")
        click.echo(f"Reverted. Undo it with: {undo}")
    else:
        click.echo("Undone.")


def _show_files(files: dict[str, Any], restored: str = "restored") -> None:
    counts = (
        f"{files['restored']} {restored}, {files['conflicts']} in conflict, {files['lost']} lost"
    )
    click.echo(f"Files: {counts}.", err=True)
    for each in files["paths"][:SHOWN_PATHS]:
        outcome = restored if each["outcome"] == "restored" else each["outcome"]
        click.echo(sanitized(f"  {outcome:<11}{each['action']:<8}{each['path']}"), err=True)
    more = len(files["paths"][SHOWN_PATHS:]) + files["omitted"]
    if more:
        click.echo(f"  and {more} more", err=True)
    if files["incomplete"]:
        click.echo("Some changes are not known any more and are not restored.", err=True)
    for process_id in files["running_process_ids"]:
        click.echo(f"Process {process_id} still runs and may write again.", err=True)


FORK_S_MAX = 60.0


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.argument("message_id", metavar="[MESSAGE]", type=click.IntRange(min=1), required=False)
@click.option(
    "--workspace", type=click.Choice(("none", "same", "copy")), default="none", show_default=True,
    help="Work without its files, in the same ones, or in a copy of them as they are now.",
)  # fmt: skip
@click.option("--title", help="The title of the copy.")
@json_option
def fork(
    chat_id: str, message_id: int | None, workspace: str, title: str | None, as_json: bool
) -> None:
    """Copy the chat CHAT up to MESSAGE, or all of it, into a new chat."""
    body: dict[str, Any] = {"workspace": workspace}
    body |= {} if message_id is None else {"message_id": message_id}
    body |= {} if title is None else {"title": title}
    made = post(
        current_api(),
        f"{chat_path(chat_id)}/fork",
        body,
        key=str(uuid.uuid4()),  # noqa: TID251 (a command's own composition root)
        needs="id",
        deadline=monotonic() + FORK_S_MAX,
        pause=threading.Event().wait,
        late="the copy was not made in time",
    )
    click.echo(json.dumps(made, indent=2, ensure_ascii=False) if as_json else made["id"])
