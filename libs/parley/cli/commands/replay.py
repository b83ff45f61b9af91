"""`parley replay`: plays recorded answers of providers through the adapters."""

import subprocess
import sys

import click

from parley.cli.invocation import current
from parley.cli.options import HomeCommand

PROGRAM = ("-m", "chatd.replay")


@click.command(cls=HomeCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def replay(files: tuple[str, ...]) -> int:
    """Play each recording FILE through the real adapter, from a server on this machine.

    Prints one JSON object per file: text, reasoning, tool calls, sources, usage, why it ended or
    what the error was. Exit code 1 if a file is not a recording.
    """
    ended = subprocess.run(
        [sys.executable, *PROGRAM, "--", *files], env=dict(current().environment), check=False
    )
    return ended.returncode
