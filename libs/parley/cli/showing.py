"""Printing the events of a chat: as people read them, or as they came."""

import json
import sys

import click

from parley.cli.answer import Answer, Note, Text, sanitized
from parley.cli.sse import ServerEvent

CHATS = "/api/v1/chats"


def show(event: ServerEvent, answer: Answer, *, as_json: bool) -> None:
    """Print what an event adds to an answer, or the event itself on one line."""
    shown = answer.take(event)
    if as_json:
        printed = {"type": event.type, "cursor": event.cursor, **event.data}
        click.echo(json.dumps(printed, ensure_ascii=False))
        return
    for piece in shown:
        match piece:
            case Text(text):
                is_terminal = sys.stdout.isatty()
                click.echo(sanitized(text) if is_terminal else text, nl=False)
            case Note(line):
                click.echo(sanitized(line), err=True)
