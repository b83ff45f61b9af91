"""`parley run`: one prompt in a new chat, its answer on standard output."""

import sys
import threading
import uuid
from collections.abc import Callable
from time import monotonic

import click

from parley.cli.answer import Answer, Ending, sanitized
from parley.cli.api import REQUEST_S_MAX, Api, ApiRefused, Unreachable
from parley.cli.errors import CliError, NeedsAction, TimedOut
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.server import find_server
from parley.cli.showing import CHATS, show
from parley.cli.sse import follow

CREATE_TRIES = 20
CREATE_PAUSE_S = 0.5


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
    pause = threading.Event().wait
    # The key makes it safe to send the request again when the answer got lost.
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    chat_id = create_chat(api, prompt, key, deadline=deadline, pause=pause)
    answer = Answer()
    try:
        for event in follow(api, f"{CHATS}/{chat_id}/events", deadline=deadline, pause=pause):
            show(event, answer, as_json=as_json)
            if answer.ending is not None:
                break
    except TimedOut as error:
        raise TimedOut(f"chat {chat_id} is still running after {timeout_s:g} s") from error
    match answer.ending:
        case Ending.ERROR:
            raise CliError(sanitized(answer.problem or "the turn failed") + f" (chat {chat_id})")
        case Ending.REQUIRES_ACTION:
            raise NeedsAction(f"chat {chat_id} waits for results of tools that run elsewhere")


def create_chat(
    api: Api, prompt: str, key: str, *, deadline: float, pause: Callable[[float], object]
) -> str:
    """Create a chat that starts with `prompt` and return its id; try again while nobody answers."""
    body = {"content": [{"type": "text", "text": prompt}]}
    headers = {"Idempotency-Key": f'"{key}"'}
    for attempt in range(1, CREATE_TRIES + 1):
        left_s = max(0.01, min(REQUEST_S_MAX, deadline - monotonic()))
        try:
            created = api.call("POST", CHATS, body, headers, needs="id", within_s=left_s)
            return str(created["id"])
        except (Unreachable, ApiRefused) as error:
            is_passing = isinstance(error, Unreachable) or error.status in (502, 503, 504)
            if is_passing and monotonic() + CREATE_PAUSE_S > deadline:
                raise TimedOut(f"no chat could be created in time: {error.message}") from error
            if not is_passing or attempt == CREATE_TRIES:
                raise
            pause(CREATE_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")
