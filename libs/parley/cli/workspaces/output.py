"""`parley output`: prints the output of a process of a chat's workspace as it comes."""

import re
import sys
import threading
from time import monotonic
from typing import Any, Final
from urllib.parse import quote

import click

from parley.cli.api.events import follow
from parley.cli.api.requests import current_api
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.errors import CliError, TimedOut
from parley.cli.options import HomeCommand
from parley.cli.text import sanitized

TYPES: Final = "process_output,process_ended"
_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[@-Z\\^_])"
)
#: An escape sequence that another piece may complete.
_BEGUN: Final = re.compile(r"\x1b[^\x1b]{0,200}\Z")


@click.command(cls=HomeCommand)
@click.argument("chat", type=CHAT_ID)
@click.argument("process")
@click.option(
    "--from", "cursor", type=click.IntRange(min=0), default=0, metavar="CURSOR",
    help="Go on at this byte of the output.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Stop after so long; exit code 124.",
)  # fmt: skip
def output(chat: str, process: str, cursor: int, timeout_s: float | None) -> int:
    """Print the output of PROCESS in the workspace of the chat CHAT until it ends.

    The exit code is that of the process. On a terminal, colours and other escape sequences are
    left out.
    """
    api = current_api()
    deadline = monotonic() + timeout_s if timeout_s is not None else float("inf")
    printer, at = _Printer(is_plain=sys.stdout.isatty()), cursor

    def path() -> str:
        return f"{chat_path(chat)}/events?types={TYPES}&processes={quote(process, safe='')}:{at}"

    try:
        for event in follow(api, path, deadline=deadline, pause=threading.Event().wait):
            told = event.data.get(event.type)
            if not isinstance(told, dict):
                continue
            if event.type == "process_output" and told.get("cursor") == at:
                at = int(told["next_cursor"])
                printer.take(str(told["text"]))
            elif event.type == "process_ended":
                printer.finish()
                return _exit_code(told)
    except TimedOut as error:
        go_on = f"parley output {chat} {process} --from {at}"
        raise TimedOut(f"stopped after {timeout_s:g} s; go on with: {go_on}") from error
    raise CliError("the stream ended before the process did")


def _exit_code(ended: dict[str, Any]) -> int:
    """Return the exit code of a process that has ended.

    Raises:
        CliError: It cannot be followed, or its exit is not known.
    """
    if error := ended.get("error"):
        raise CliError(sanitized(str(error.get("message", "the process cannot be followed"))))
    process = ended.get("process") or {}
    if exit_ := process.get("exit"):
        return int(exit_["shell_exit_code"])
    raise CliError(f"the process is {process.get('state', 'gone')}; its exit code is not known")


class _Printer:
    """Prints pieces of output, whole or without escape sequences, which pieces may cut."""

    def __init__(self, *, is_plain: bool) -> None:
        self._is_plain = is_plain
        self._held = ""

    def take(self, text: str) -> None:
        """Print a piece."""
        if self._is_plain:
            text = _ESCAPE.sub("", self._held + text)
            begun = _BEGUN.search(text)
            self._held = begun.group() if begun else ""
            text = sanitized(text[: len(text) - len(self._held)])
        click.echo(text, nl=False, color=True)  # Else click takes colours out of a pipe.

    def finish(self) -> None:
        """Print what was held back."""
        click.echo(sanitized(self._held), nl=False)
