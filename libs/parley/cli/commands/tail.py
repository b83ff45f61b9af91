"""`parley tail`: prints a chat and follows its events until interrupted."""

import threading
from time import monotonic

import click

from parley.cli.api.client import Api
from parley.cli.api.events import ServerEvent, follow
from parley.cli.api.server import find_server
from parley.cli.chats.answer import Answer
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.chats.turn_output import show
from parley.cli.errors import CliError, TimedOut
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.terminal_text import sanitized


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
    api = Api(find_server(current()))
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    answer = Answer(shows_users=True)
    last = cursor
    path = f"{chat_path(chat)}/events"
    try:
        for event in follow(
            api, path, deadline=deadline, pause=threading.Event().wait, cursor=cursor
        ):
            last = event.cursor or last
            show(event, answer, as_json=as_json)
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
