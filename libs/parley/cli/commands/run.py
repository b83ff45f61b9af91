"""`parley run`: one prompt in a new chat, its answer on standard output."""

import sys
import threading
import uuid
from time import monotonic

import click

from parley.cli.api import Api
from parley.cli.chats import CHATS
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.posting import post
from parley.cli.server import find_server
from parley.cli.showing import Patience, show_turn


@click.command(cls=HomeCommand)
@click.argument("prompt")
@click.option("--json", "as_json", is_flag=True, help="Print every event as one line of JSON.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Give up after so long; exit code 124.",
)  # fmt: skip
def run(prompt: str, as_json: bool, timeout_s: float | None) -> None:
    """Ask PROMPT in a new chat and print the answer as it comes; `-` reads it from standard input.

    The text goes to standard output, what tools do to standard error.
    """
    if prompt == "-":
        prompt = sys.stdin.read()
    api = Api(find_server(current()))
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    patience = Patience(timeout_s, deadline, threading.Event().wait)
    created = post(
        api,
        CHATS,
        {"content": [{"type": "text", "text": prompt}]},
        key=str(uuid.uuid4()),  # noqa: TID251 (a command's own composition root)
        needs="id",
        deadline=patience.deadline,
        pause=patience.pause,
        late="no chat could be created in time",
    )
    show_turn(api, str(created["id"]), patience, as_json=as_json)
