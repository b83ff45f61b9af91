"""`parley logs`: the logs of the processes, file by file or followed."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import click

from parley.cli.errors import CliError
from parley.cli.home.layout import Home
from parley.cli.home.log_files import logs_of, tail
from parley.cli.invocation import current
from parley.cli.options import HomeCommand

LINES_DEFAULT = 50
LOOK_EVERY_S = 0.25


@click.command(cls=HomeCommand)
@click.argument("service", required=False)
@click.option("-f", "--follow", "is_following", is_flag=True, help="Go on with what is written.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=LINES_DEFAULT, show_default=True,
    help="Lines of each file.",
)  # fmt: skip
def logs(service: str | None, is_following: bool, lines: int) -> None:
    """Show the log of SERVICE (chatd, or one process: chatd-0), or of all of them."""
    home = current().local_home
    files = matching_logs(home, service)
    if not files:
        names = ", ".join(path.stem for path in matching_logs(home, None)) or "none yet"
        raise CliError(f"there is no log of {service or 'anything'} in {home.logs} (logs: {names})")
    for path in files:
        for line in tail(path, lines):
            _print(path, line, is_only=len(files) == 1)
    if is_following:
        _follow(files)


def matching_logs(home: Home, service: str | None) -> list[Path]:
    """Return the log files of `service`, or all of them."""
    found = logs_of(home)
    if service is None:
        return found
    one_of_it = re.compile(rf"{re.escape(service)}(-[0-9]+)?")
    return [path for path in found if one_of_it.fullmatch(path.stem)]


def _follow(files: list[Path]) -> None:
    readers = [(path, new_lines(path)) for path in files]
    pause = threading.Event()
    while True:
        for path, reader in readers:
            for line in next(reader):
                _print(path, line, is_only=len(files) == 1)
        pause.wait(LOOK_EVERY_S)


def new_lines(path: Path) -> Iterator[list[str]]:
    """Yield, on each iteration, the complete lines added since the last one; follows rotation."""
    position, inode, rest = path.stat().st_size, path.stat().st_ino, ""
    while True:
        try:
            found = path.stat()
        except FileNotFoundError:
            yield []
            continue
        if found.st_ino != inode or found.st_size < position:
            position, inode, rest = 0, found.st_ino, ""
        with path.open("rb") as file:
            file.seek(position)
            added = file.read()
        position += len(added)
        *lines, rest = (rest + added.decode(errors="replace")).split("\n")
        yield lines


def _print(path: Path, line: str, *, is_only: bool) -> None:
    click.echo(line if is_only else f"{path.stem:<14} | {line}")
