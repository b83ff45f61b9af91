"""`parley send` sends to a chat and prints the answer, `parley interrupt` stops a turn."""

import json
import sys
import threading
import uuid
from time import monotonic
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import PAGE_MAX, current_api, model_hint, new_key
from parley.cli.api.retries import post
from parley.cli.chats.action_answers import Person
from parley.cli.chats.actions import action_path
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path, last_messages, status_word
from parley.cli.chats.slash_commands import check_prompt, is_compact
from parley.cli.chats.turn_output import Patience, show_turn
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.text import print_json

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.argument("prompt")
@click.option("--interrupt", is_flag=True, help="Stop what runs and go next, instead of waiting.")
@click.option("--model", "model_id", metavar="ID", help="The model to use from here on.")
@click.option("--effort", type=click.Choice(EFFORTS), help="How hard it thinks from here on.")
@click.option("--no-wait", is_flag=True, help="Return as soon as the message is taken.")
@click.option("--json", "as_json", is_flag=True, help="Print every event as one line of JSON.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Give up after so long; exit code 124.",
)  # fmt: skip
@model_hint
def send(
    chat_id: str,
    prompt: str,
    interrupt: bool,
    model_id: str | None,
    effort: str | None,
    no_wait: bool,
    as_json: bool,
    timeout_s: float | None,
) -> None:
    """Send PROMPT to the chat CHAT and print the answer; `-` reads it from standard input.

    While another turn runs the message waits for its end, and this command does not. With
    `/compact` as PROMPT the history is summarised now.
    """
    text = sys.stdin.read() if prompt == "-" else prompt
    if is_compact(prompt):
        _compact(chat_id, as_json=as_json)
        return
    check_prompt(prompt, chat_id, current().hint)
    body: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "busy_behavior": "interrupt" if interrupt else "queue",
    }
    body |= {"model_id": model_id} if model_id else {}
    body |= {"reasoning_effort": effort} if effort else {}
    api = current_api()
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    patience = Patience(timeout_s, deadline, threading.Event().wait)
    sent = post(
        api,
        f"{chat_path(chat_id)}/messages",
        body,
        key=_new_key(),
        needs="queued",
        deadline=patience.deadline,
        pause=patience.pause,
        late="the message could not be sent in time",
    )
    is_over = no_wait or sent["queued"]
    if as_json and is_over:
        click.echo(json.dumps(sent, ensure_ascii=False))
    elif sent["queued"]:
        click.echo(f"Queued as {sent['queued_message']['id']}.", err=True)
    elif no_wait and sent["message"] is None:
        click.echo(f"Answered action {sent['answered_action_id']}.", err=True)
    elif no_wait:
        click.echo(f"Sent as message {sent['message']['id']}.", err=True)
    if not is_over:
        person = Person(
            api, patience, new_key=_new_key, hint=current().hint, is_terminal=sys.stdin.isatty()
        )
        show_turn(
            api,
            chat_id,
            patience,
            as_json=as_json,
            after_id=_last_id(api, chat_id, sent),
            waiting=person.answer if sys.stdin.isatty() else None,
        )


def _compact(chat_id: str, *, as_json: bool) -> None:
    """Have the history of a chat summarised."""
    path = f"{chat_path(chat_id)}/compact"
    chat = current_api().call("POST", path, {}, new_key(), needs="status")
    if as_json:
        print_json(chat)
    else:
        click.echo("The history is being summarised.", err=True)


@click.command(cls=HomeCommand)
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@click.option("--json", "as_json", is_flag=True, help="Print the chat as JSON.")
def interrupt(chat_id: str, as_json: bool) -> None:
    """Stop the turn of the chat CHAT and keep what it said; one that is over is no error."""
    api = current_api()
    chat = api.call(
        "POST",
        f"{chat_path(chat_id)}/interrupt",
        {},
        {"Idempotency-Key": f'"{_new_key()}"'},
        needs="status",
    )
    if as_json:
        print_json(chat)
    else:
        click.echo(f"The chat is {status_word(chat)}.")


def _last_id(api: Api, chat_id: str, sent: dict[str, Any]) -> int:
    """Return the id of the message after which the answer comes."""
    if sent["message"] is not None:
        return int(sent["message"]["id"])
    # It answered a question: what follows comes after the message that asks.
    action = api.call("GET", action_path(chat_id, sent["answered_action_id"]), needs="id")
    for message in reversed(last_messages(api, chat_id, count=PAGE_MAX)["messages"]):
        called = [part.get("tool_call_id") for part in message.get("content", ())]
        if message.get("role") == "assistant" and action["tool_call_id"] in called:
            return int(message["id"])
    return 0


def _new_key() -> str:
    return str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
