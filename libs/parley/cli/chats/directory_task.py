"""Runs a task on a copy of a directory: copy, turn, check, diff, and applying the diff."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from parley.cli.api.client import Api
from parley.cli.api.events import follow
from parley.cli.api.retries import post
from parley.cli.chats.answer import Answer, Ending
from parley.cli.chats.directory_copy import apply_patch, packed
from parley.cli.chats.listing import CHATS, chat_path, one_line
from parley.cli.chats.turn_output import Patience, Waiting, show_turn
from parley.cli.chats.workspace import ChatWorkspace, Ended, OutputChunk
from parley.cli.errors import CliError
from parley.cli.text import echo_foreign, sanitized

#: A chat begins with a message. The demo model answers this one, at no cost and without tools, so
#: that the files are copied before the model that does the work begins.
DEMO_MODEL: Final = "scripted"
READY: Final = "repeat after me: The files of {name} are in the workspace."


@dataclass(frozen=True, slots=True)
class Way:
    """How a chat works.

    Attributes:
        is_planning: Whether it plans first.
        is_attended: Whether somebody answers its questions.
    """

    is_planning: bool = False
    is_attended: bool = False

    @property
    def mode(self) -> dict[str, Any]:
        """The mode of the chat, as a field of a request."""
        return {"mode": "plan"} if self.is_planning else {}

    @property
    def unattended(self) -> dict[str, Any]:
        """Whether nobody answers, as a field of the request that creates the chat."""
        return {} if self.is_attended else {"unattended": True}


@dataclass(frozen=True, slots=True)
class Work:
    """A task on a directory.

    Attributes:
        directory: The directory to copy.
        title: The title of the chat.
        prompt: The prompt for the model.
        model_id: The model, None for the default.
        check: A command whose exit code says whether the work is done, None for none.
        applies: Whether to apply the changes to the directory if the check passes.
        way: How the chat works.
    """

    directory: Path
    title: str
    prompt: str
    model_id: str | None
    check: str | None
    applies: bool
    way: Way = Way()


def work(
    api: Api,
    wanted: Work,
    patience: Patience,
    *,
    new_key: Callable[[], str],
    as_json: bool,
    waiting: Waiting | None = None,
) -> None:
    """Run the task in a new chat, and print the result.

    Raises:
        CliError: the turn failed, the check did not pass, or the changes could not be applied.
    """
    copied = packed(wanted.directory)
    chat_id = _waiting_chat(api, wanted, patience, new_key())
    workspace = ChatWorkspace(api, chat_id, patience, key=new_key())
    workspace.fill(copied.archive, keeps_ignored=copied.is_chosen)
    after_id = _send(api, chat_id, wanted, patience, new_key())
    show_turn(api, chat_id, patience, as_json=as_json, after_id=after_id, waiting=waiting)
    # Before the check, whose own changes are not part of the work.
    patch, is_whole = workspace.diff()
    ended = None if wanted.check is None else _checked(workspace, wanted.check)
    _show(patch)
    if ended is not None and ended.exit_code != 0:
        raise CliError(f"the check failed ({ended.words}): {wanted.check} (chat {chat_id})")
    if wanted.applies and patch:
        if not is_whole:
            raise CliError("nothing was applied: the diff is cut, or has files that are no text")
        apply_patch(wanted.directory, patch)
        click.echo(f"Applied to {wanted.directory}.", err=True)


def _waiting_chat(api: Api, wanted: Work, patience: Patience, key: str) -> str:
    """Return a chat whose first turn is over."""
    name = one_line(wanted.directory.resolve().name) or "the directory"
    created = post(
        api,
        CHATS,
        {
            "content": [{"type": "text", "text": READY.format(name=name)}],
            "title": one_line(wanted.title) or name,
            "model_id": DEMO_MODEL,
            **wanted.way.unattended,
        },
        key=key,
        needs="id",
        deadline=patience.deadline,
        pause=patience.pause,
        late="no chat could be created in time",
    )
    chat_id = str(created["id"])
    answer = Answer()
    events = follow(
        api, f"{chat_path(chat_id)}/events", deadline=patience.deadline, pause=patience.pause
    )
    for event in events:
        answer.take(event)
        if answer.ending is not None:
            break
    if answer.ending is not Ending.WAITING:
        raise CliError(sanitized(answer.problem or "the chat could not begin"))
    click.echo(f"Copying {name} into the workspace of chat {chat_id}.", err=True)
    return chat_id


def _send(api: Api, chat_id: str, wanted: Work, patience: Patience, key: str) -> int:
    """Send the prompt to the model that does the work; return the id of the message."""
    api.call("PATCH", chat_path(chat_id), {"model_id": wanted.model_id, **wanted.way.mode})
    body: dict[str, Any] = {"content": [{"type": "text", "text": wanted.prompt}]}
    sent = post(
        api,
        f"{chat_path(chat_id)}/messages",
        body,
        key=key,
        needs="message",
        deadline=patience.deadline,
        pause=patience.pause,
        late="the message could not be sent in time",
    )
    return int(sent["message"]["id"])


def _checked(workspace: ChatWorkspace, command: str) -> Ended:
    """Run the check in the workspace; its output goes to standard error."""
    click.echo(f"$ {sanitized(command)}", err=True)
    for event in workspace.run(command):
        match event:
            case OutputChunk(text):
                click.echo(sanitized(text), err=True, nl=False)
            case Ended():
                return event
    raise AssertionError("a process that is followed ends")


def _show(patch: str) -> None:
    if not patch:
        click.echo("Nothing was changed.", err=True)
        return
    echo_foreign(patch, nl=not patch.endswith("\n"))
