"""Lists API keys and service tokens, and prints a new one or saves it in a private file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from parley.cli.errors import CliError
from parley.cli.text import print_json, print_list
from parley.files import write_atomically

SECONDS_PER_DAY: Final = 24 * 60 * 60

output_option = click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write it to FILE, which only you can read, instead of printing it.",
)  # fmt: skip
force_option = click.option("--force", is_flag=True, help="Replace FILE if it exists.")


@dataclass(frozen=True, slots=True)
class NewCredential:
    """Where a new key or token goes.

    Attributes:
        field: The field of the answer with its value.
        file: The file for the value; None for standard output.
        replaces: Whether a file that exists is replaced.
        as_json: Whether the answer is printed as JSON.
    """

    field: str
    file: Path | None
    replaces: bool
    as_json: bool

    def check(self) -> None:
        """Check the file before anything is made, because a value is shown only once.

        Raises:
            CliError: it exists or is no file, or its directory does not exist or is read-only.
        """
        if self.file is None:
            if self.replaces:
                raise click.UsageError("--force is for --output: name a file.")
            return
        if self.file.exists() and not self.file.is_file():
            raise CliError(f"{self.file} is no file: name another")
        if self.file.exists() and not self.replaces:
            raise CliError(f"{self.file} exists: name another file, or give --force")
        if not self.file.parent.is_dir():
            raise CliError(f"there is no directory {self.file.parent}: make it first")
        if not os.access(self.file.parent, os.W_OK | os.X_OK):
            raise CliError(f"you may not write to {self.file.parent}: name another directory")

    def tell(self, made: dict[str, Any], revoke: str) -> None:
        """Print or save what was made.

        Args:
            made: The answer of the server.
            revoke: The command that revokes it.

        Raises:
            CliError: the file cannot be written.
        """
        value, known = made[self.field], made
        if self.file is not None:
            known = {name: each for name, each in made.items() if name != self.field}
            try:
                write_atomically(self.file, f"{value}\n".encode())
            except OSError as error:
                raise CliError(
                    f"{self.file} cannot be written ({error.strerror}), and the value is lost: "
                    f"revoke it with `{revoke}`, and make another"
                ) from error
        if self.as_json:
            print_json(known, as_ascii=True)
            return
        click.echo(value if self.file is None else f"Wrote {self.file}, which only you can read.")
        click.echo(f"id {made['id']}, expires {made['expires_at']}", err=True)


def show_credentials(listed: dict[str, Any], columns: tuple[str, ...], *, as_json: bool) -> None:
    """Print a list of keys or tokens, as a table or as JSON."""
    rows = ([_cell(item.get(column)) for column in columns] for item in listed["items"])
    print_list(listed, columns, rows, as_json=as_json, as_ascii=True)


def _cell(value: Any) -> str:
    text = ",".join(value) if isinstance(value, list) else str(value or "")
    return text or "-"
