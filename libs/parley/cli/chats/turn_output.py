"""Prints a turn on the terminal while it runs; its outcome decides the exit code."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from parley.cli.api.client import Api
from parley.cli.api.events import ServerEvent, follow
from parley.cli.api.retries import get
from parley.cli.chats.actions import open_actions
from parley.cli.chats.answer import Answer, Ending, Note, Text
from parley.cli.chats.listing import chat_path
from parley.cli.errors import CliError, NeedsAction, TimedOut
from parley.cli.text import echo_foreign, sanitized

STOP_S_MAX: Final = 10.0
#: Answers what a chat waits for; returns False if only a program can.
Waiting = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a command waits.

    Attributes:
        timeout_s: The value of --timeout; None for no limit.
        deadline: The `time.monotonic` at which to stop.
        pause: Sleeps that many seconds.
    """

    timeout_s: float | None
    deadline: float
    pause: Callable[[float], object]


@dataclass(slots=True)
class FollowedTurn:
    """Tells one turn of a chat from the next, and whether it was interrupted.

    Attributes:
        asked_id: The message that started it; 0 until it is seen.
    """

    asked_id: int = 0
    _is_stopped: bool = False
    _has_cancelled_calls: bool = False

    @property
    def is_interrupted(self) -> bool:
        """Whether it ends without an answer, or with half of one, because somebody stopped it."""
        return self._is_stopped or self._has_cancelled_calls

    def take(self, event: ServerEvent) -> bool:
        """Process one event; return whether it belongs to the next turn."""
        payload = event.data.get(event.type, event.data)
        if event.type == "status" and payload.get("status") == "interrupting":
            self._is_stopped = True
        if event.type != "message":
            return False
        match payload.get("role"):
            case "user" if not payload.get("compressed"):
                self.asked_id = self.asked_id or int(payload["id"])
                return int(payload["id"]) > self.asked_id
            case "assistant":
                self._is_stopped |= payload.get("finish_reason") == "interrupted"
                self._has_cancelled_calls = False
            case "tool":
                outcomes = [part.get("outcome") for part in payload.get("content", ())]
                self._has_cancelled_calls |= "cancelled" in outcomes
        return False


def show_turn(
    api: Api,
    chat_id: str,
    patience: Patience,
    *,
    as_json: bool,
    after_id: int = 0,
    waiting: Waiting | None = None,
) -> None:
    """Print the events of a chat after the message `after_id` until its turn ends.

    The answers to messages that others queued belong to other turns.

    Ctrl-C stops the turn. `waiting` is called when the chat waits for somebody.

    Raises:
        CliError: the turn failed, or was interrupted.
        NeedsAction: it waits for an answer, or for tools that run elsewhere.
        TimedOut: it still runs at the deadline.
    """
    path = f"{chat_path(chat_id)}/events" + (f"?after_id={after_id}" if after_id else "")
    answer, turn = Answer(), FollowedTurn(after_id)
    try:
        for event in follow(api, path, deadline=patience.deadline, pause=patience.pause):
            if turn.take(event):
                answer.ending = Ending.WAITING
                break
            show(event, answer, as_json=as_json)
            if answer.ending is Ending.REQUIRES_ACTION and (
                waiting(chat_id)
                if waiting is not None
                else not open_actions(read_chat(api, chat_id, patience))
            ):
                answer.ending = None
            if answer.ending is not None:
                break
    except TimedOut as error:
        raise TimedOut(f"chat {chat_id} is still running after {patience.timeout_s:g} s") from error
    except KeyboardInterrupt:
        _stop(api, chat_id)
        raise
    except click.Abort:
        click.echo(f"\nThe chat waits: `parley answer {chat_id}` answers it.", err=True)
        raise
    match answer.ending:
        case Ending.ERROR:
            problem = answer.problem or _last_error(read_chat(api, chat_id, patience))
            raise CliError(sanitized(problem) + f" (chat {chat_id})")
        case Ending.REQUIRES_ACTION:
            raise NeedsAction(
                f"chat {chat_id} waits: `parley answer {chat_id}` answers what it asks, and "
                "results of tools that run elsewhere come from their programs"
            )
        case _ if turn.is_interrupted:
            raise CliError(
                f"the turn was interrupted: the answer is not complete (chat {chat_id}); "
                f"`parley send {chat_id} ...` goes on with it"
            )


def read_chat(api: Api, chat_id: str, patience: Patience) -> dict[str, Any]:
    """Return a chat; services that restart in the middle of a turn are waited for.

    Raises:
        TimedOut: The deadline passed.
        Unreachable: The server was unreachable for too long.
        ApiRefused: The answer is a problem.
    """
    chat: dict[str, Any] = get(
        api,
        chat_path(chat_id),
        needs="id",
        deadline=patience.deadline,
        pause=patience.pause,
        late="the chat could not be read in time",
    )
    return chat


def _last_error(chat: Mapping[str, Any]) -> str:
    """Return why the last turn failed; the status arrives before the event with the error."""
    error = chat.get("last_error") or {}
    return str(error.get("message") or "the turn failed")


def _stop(api: Api, chat_id: str) -> None:
    """Stop the turn, and print how to continue; a second Ctrl-C interrupts this, too."""
    try:
        api.call("POST", f"{chat_path(chat_id)}/interrupt", {}, within_s=STOP_S_MAX)
    except CliError as error:
        click.echo(f"\nChat {chat_id} goes on, it could not be stopped: {error}", err=True)
    else:
        click.echo(f"\nStopped. `parley send {chat_id} ...` goes on with it.", err=True)


def show(event: ServerEvent, answer: Answer, *, as_json: bool) -> None:
    """Print the output that an event adds to an answer, or the event itself on one line."""
    shown = answer.take(event)
    if as_json:
        printed = {"type": event.type, "cursor": event.cursor, **event.data}
        click.echo(json.dumps(printed, ensure_ascii=False))
        return
    for piece in shown:
        match piece:
            case Text(text):
                echo_foreign(text, nl=False)
            case Note(line):
                click.echo(sanitized(line), err=True)
