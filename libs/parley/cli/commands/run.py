"""`parley run`: sends one prompt in a new chat and prints its answer on standard output."""

import sys
import threading
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, model_hint
from parley.cli.api.retries import post
from parley.cli.chats.action_answers import Person
from parley.cli.chats.directory_task import DEMO_MODEL, Way, Work, work
from parley.cli.chats.listing import CHATS, one_line
from parley.cli.chats.run_settings import (
    FILE,
    RunSettings,
    nearest_settings,
    repository_of,
    settings_of,
)
from parley.cli.chats.slash_commands import check_prompt, is_compact
from parley.cli.chats.turn_output import Patience, show_turn
from parley.cli.errors import ConfigurationProblem
from parley.cli.invocation import current
from parley.cli.options import HomeCommand


@click.command(cls=HomeCommand)
@click.argument("prompt")
@click.option(
    "-C", "--directory", type=click.Path(path_type=Path), metavar="DIR",
    help="Work on a copy of DIR, and print how it was changed. Where a parley.toml says how to "
    "work, this is so without being asked for.",
)  # fmt: skip
@click.option("--no-directory", is_flag=True, help="Work on no directory, whatever is here.")
@click.option(
    "--check", metavar="COMMAND",
    help="With a directory: run COMMAND at the end; exit code 1 unless it passes.",
)  # fmt: skip
@click.option(
    "--apply",
    "applies",
    is_flag=True,
    help="With a directory: change it likewise; what is in no commit there stays.",
)
@click.option(
    "--plan", "is_planning", is_flag=True,
    help="Plan first: nothing is changed until the plan is accepted.",
)  # fmt: skip
@click.option(
    "--answer", "given", multiple=True, metavar="TEXT",
    help="Answer in advance what it asks, once for each in their order: a question with an option "
    "or own words, a plan with `accept` or with what should change. It approves no call.",
)  # fmt: skip
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
@model_hint
def run(
    prompt: str,
    directory: Path | None,
    no_directory: bool,
    check: str | None,
    applies: bool,
    is_planning: bool,
    given: tuple[str, ...],
    model_id: str | None,
    script: Path | None,
    as_json: bool,
    timeout_s: float | None,
) -> None:
    """Ask PROMPT in a new chat and print the answer as it comes; `-` reads it from standard input.

    The text goes to standard output, what tools do to standard error. Ctrl-C stops the turn.
    Questions of the model are asked on the terminal. Without one nobody is asked, except with
    --plan or --answer, which wait for `parley answer`.
    """
    if is_compact(prompt):
        raise ConfigurationProblem("a new chat has no history to summarise: send /compact to one")
    check_prompt(prompt, "CHAT", current().hint)
    settings = _settings(directory, no_directory=no_directory)
    if settings is None and (check is not None or applies):
        raise ConfigurationProblem("--check and --apply need --directory: add -C .")
    if settings is not None and settings.script is not None and model_id is None and script is None:
        # Another model would see the solution that it should find itself.
        model_id, script = settings.model_id or DEMO_MODEL, settings.script
    if prompt == "-":
        prompt = sys.stdin.read()
    title = prompt
    if script is not None:
        prompt = f"{prompt}\n\n{_read(script)}"
    api = current_api()
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    patience = Patience(timeout_s, deadline, threading.Event().wait)
    is_terminal = sys.stdin.isatty()
    way = Way(is_planning, is_attended=is_terminal or is_planning or bool(given))
    hint = current().hint
    person = Person(
        api, patience, new_key=_new_key, hint=hint, is_terminal=is_terminal, given=given
    )
    waiting = person.answer if way.is_attended else None
    if settings is not None:
        wanted = Work(
            settings.directory,
            title,
            prompt,
            model_id or settings.model_id,
            check or settings.check,
            applies,
            way,
        )
        work(api, wanted, patience, new_key=_new_key, as_json=as_json, waiting=waiting)
        return
    created = _created(api, prompt, model_id, way, patience)
    show_turn(api, created, patience, as_json=as_json, waiting=waiting)


def _settings(directory: Path | None, *, no_directory: bool) -> RunSettings | None:
    """Return the directory to copy and its settings, None for none."""
    if directory is not None:
        if no_directory:
            raise ConfigurationProblem("--directory and --no-directory contradict: leave one out")
        return settings_of(directory) or RunSettings(directory)
    if no_directory:
        return None
    here = Path.cwd()
    settings = nearest_settings(here)
    if settings is not None:
        place = one_line(str(settings.directory / FILE))
        click.echo(f"As {place} says; --no-directory asks without it.", err=True)
    elif sys.stderr.isatty() and (repository := repository_of(here)) is not None:
        name = one_line(repository.name)
        click.echo(f"This chat sees nothing of {name}: -C . works on a copy of it.", err=True)
    return settings


def _created(api: Api, prompt: str, model_id: str | None, way: Way, patience: Patience) -> str:
    """Send the prompt in a new chat without a directory; return the id of the chat."""
    body: dict[str, Any] = {"content": [{"type": "text", "text": prompt}], **way.unattended}
    body |= way.mode
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
    return str(created["id"])


def _new_key() -> str:
    return str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)


def _read(script: Path) -> str:
    try:
        return script.read_text(encoding="utf-8")
    except OSError as error:
        remedy = f"name another with --script or in {FILE}"
        raise ConfigurationProblem(
            f"{script} cannot be read ({error.strerror}): {remedy}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationProblem(f"{script} is no text ({error}): name another") from error
