"""`parley ls`, `search`, `show` and `tail`: finds chats, and prints what was said in them."""

import shlex
import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

import click

from parley.cli.accounts.people import person_with_login
from parley.cli.api.events import ServerEvent, follow
from parley.cli.api.requests import current_api, hint_on, listed
from parley.cli.chats.actions import summary_of
from parley.cli.chats.answer import Answer
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import (
    chat_path,
    last_messages,
    list_chats,
    message_lines,
    one_line,
    queued_lines,
    row_of,
    status_word,
)
from parley.cli.chats.turn_output import show as show_event
from parley.cli.errors import CliError, TimedOut
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, print_list, sanitized


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.option(
    "-n", "--count", type=click.IntRange(min=1, max=10_000), default=50, show_default=True,
    help="How many messages at most, counted from the end.",
)  # fmt: skip
@json_option
def show(chat_id: str, count: int, as_json: bool) -> None:
    """Print the chat CHAT: its state, its last messages, and those that wait."""
    api = current_api()
    chat = api.call("GET", chat_path(chat_id), needs="id")
    said = last_messages(api, chat_id, count=count)
    if as_json:
        print_json({"chat": chat, **said})
        return
    click.echo(f"{one_line(str(chat.get('title') or ''))} ({status_word(chat)})")
    problem = chat.get("last_error")
    if problem:
        click.echo(sanitized(f"error: {problem.get('message')}"))
    retry = chat.get("retry")
    if retry:
        at, why = retry.get("retrying_at"), retry.get("error", {}).get("message")
        click.echo(sanitized(f"attempt {retry.get('attempt')} failed, next one at {at}: {why}"))
    for action in (chat.get("required_action") or {}).get("actions") or ():
        click.echo(
            f"waits for {action.get('kind')} {action.get('id')}: {one_line(summary_of(action))}"
        )
    for message in said["messages"]:
        for line in message_lines(message):
            click.echo(sanitized(line))
    for queued in said["queued_messages"]:
        for line in queued_lines(queued):
            click.echo(sanitized(line))


COLUMNS = ("id", "status", "changed", "title")


@click.command(cls=HomeCommand)
@click.option(
    "-q", "--query", metavar="TERMS",
    help='Only these, for example \'title:"blue boat"\' or search:boat.',
)  # fmt: skip
@click.option("--archived", is_flag=True, help="Those that were put away.")
@click.option("--shared", is_flag=True, help="Those that others share with me.")
@click.option("--owner", metavar="LOGIN", help="Those of a user, by `parley break-glass`.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1, max=10_000), default=20, show_default=True,
    help="How many at most.",
)  # fmt: skip
@json_option
def ls(
    query: str | None, archived: bool, shared: bool, owner: str | None, count: int, as_json: bool
) -> None:
    """List chats: pinned ones (^) first, then the newest change first; * marks unread ones."""
    api = current_api()
    filters = {"q": query} if query else {}
    filters |= {"owner_id": person_with_login(api, owner)["id"]} if owner else {}
    filters |= {"archived": "true"} if archived else {}
    filters |= {"shared_with_me": "true"} if shared else {}
    opening = f"break-glass open {shlex.quote(owner or '')} --reason ..."
    with hint_on("BREAK_GLASS_NEEDED", "open one with {}", opening):
        found = list(list_chats(api, filters, count=count))
    print_list({"items": found}, COLUMNS, map(row_of, found), as_json=as_json)


@click.command(cls=HomeCommand)
@click.argument("chat", type=CHAT_ID)
@click.option("--from", "cursor", metavar="CURSOR", help="Go on behind the event with this cursor.")
@click.option("--json", "as_json", is_flag=True, help="Print every event as one line of JSON.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Stop after so long; exit code 124.",
)  # fmt: skip
def tail(chat: str, cursor: str | None, as_json: bool, timeout_s: float | None) -> None:
    """Print what is in the chat CHAT and what happens in it, until interrupted.

    The text goes to standard output, what tools do and where to go on to standard error.
    """
    api = current_api()
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    answer = Answer(shows_users=True)
    last = cursor
    path = f"{chat_path(chat)}/events"
    try:
        for event in follow(
            api, path, deadline=deadline, pause=threading.Event().wait, cursor=cursor
        ):
            last = event.cursor or last
            show_event(event, answer, as_json=as_json)
            _check_permission(event, chat)
    except TimedOut as error:
        raise TimedOut(f"stopped after {timeout_s:g} s{_going_on(chat, last)}") from error
    except KeyboardInterrupt:
        click.echo(_going_on(chat, last).removeprefix("; "), err=True)
        raise


def _check_permission(event: ServerEvent, chat: str) -> None:
    error = event.data.get("error")
    if isinstance(error, dict) and error.get("code") == "permission_revoked":
        raise CliError(f"{sanitized(str(error.get('message', 'gone')))} (chat {chat})")


def _going_on(chat: str, cursor: str | None) -> str:
    return f"; go on with: parley tail {chat} --from {cursor}" if cursor else ""


SEARCH = "/api/v1/search"
SEARCH_PAGE_MAX = 50


@click.command(cls=HomeCommand)
@click.argument("words", nargs=-1, required=True)
@click.option("--chat", "chat_id", type=CHAT_ID, metavar="ID", help="Only in this chat.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1, max=1000), default=20, show_default=True,
    help="How many at most.",
)  # fmt: skip
@json_option
def search(words: tuple[str, ...], chat_id: str | None, count: int, as_json: bool) -> None:
    """Find WORDS in titles and messages, newest first.

    All words must occur. Write '"two words"' for a phrase, -- -word for a word that must not
    occur, and or between alternatives.
    """
    query = {"q": " ".join(words), "chat_id": chat_id or ""}
    api = current_api()
    found = list(listed(api, SEARCH, query, count=count, page_max=SEARCH_PAGE_MAX))
    if as_json:
        print_json({"items": found})
        return
    if not found:
        click.echo("Nothing was found.", err=True)
    for hit in found:
        place = "title" if hit.get("message_id") is None else f"message {hit['message_id']}"
        click.echo(f"{hit.get('chat_id')} {place}  {one_line(str(hit.get('title') or ''))}")
        click.echo(f"    {_excerpt(hit)}")


def _excerpt(hit: Mapping[str, Any]) -> str:
    """Return the excerpt as one line, with the words in bold where the output is a terminal."""
    pieces = [
        (" ".join(f"|{sanitized(str(piece.get('text')))}|".split())[1:-1], piece.get("match"))
        for piece in hit.get("excerpt", ())
    ]
    return "".join(click.style(text, bold=True) if match else text for text, match in pieces)
