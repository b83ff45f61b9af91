"""`parley run`: one prompt in a new chat, its answer on standard output."""

import sys
import threading
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

import click

from parley.cli.api import Api
from parley.cli.chats import CHATS
from parley.cli.errors import ConfigurationProblem
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.posting import post
from parley.cli.repairing import Work, work
from parley.cli.server import find_server
from parley.cli.showing import Patience, show_turn


@click.command(cls=HomeCommand)
@click.argument("prompt")
@click.option(
    "-C", "--directory", type=click.Path(path_type=Path), metavar="DIR",
    help="Work on a copy of DIR, and print how it was changed.",
)  # fmt: skip
@click.option(
    "--check", metavar="COMMAND",
    help="With --directory: run COMMAND at the end; exit code 1 unless it passes.",
)  # fmt: skip
@click.option("--apply", "applies", is_flag=True, help="With --directory: change DIR likewise.")
@click.option("--model", "model_id", metavar="ID", help="The model to use.")
@click.option(
    "--script", type=click.Path(path_type=Path), metavar="FILE",
    help="Append FILE to PROMPT: the steps that the demo model takes.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print every event as one line of JSON.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Give up after so long; exit code 124.",
)  # fmt: skip
def run(
    prompt: str,
    directory: Path | None,
    check: str | None,
    applies: bool,
    model_id: str | None,
    script: Path | None,
    as_json: bool,
    timeout_s: float | None,
) -> None:
    """Ask PROMPT in a new chat and print the answer as it comes; `-` reads it from standard input.

    The text goes to standard output, what tools do to standard error.
    """
    if directory is None and (check is not None or applies):
        raise ConfigurationProblem("--check and --apply need --directory: add -C .")
    if prompt == "-":
        prompt = sys.stdin.read()
    if script is not None:
        prompt = f"{prompt}\n\n{_read(script)}"
    api = Api(find_server(current()))
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    patience = Patience(timeout_s, deadline, threading.Event().wait)
    if directory is not None:
        wanted = Work(directory, prompt, model_id, check, applies)
        work(api, wanted, patience, new_key=_new_key, as_json=as_json)
        return
    body: dict[str, Any] = {"content": [{"type": "text", "text": prompt}]}
    body |= {"model_id": model_id} if model_id else {}
    created = post(
        api,
        CHATS,
        body,
        key=_new_key(),
        needs="id",
        deadline=patience.deadline,
        pause=patience.pause,
        late="no chat could be created in time",
    )
    show_turn(api, str(created["id"]), patience, as_json=as_json)


def _new_key() -> str:
    return str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)


def _read(script: Path) -> str:
    try:
        return script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationProblem(f"{script} cannot be read ({error}): name a text") from error
