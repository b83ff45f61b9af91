"""What commands print: foreign text made safe for a terminal, tables, and JSON."""

import json
import re
import sys
from collections.abc import Iterable, Sequence

import click

#: Characters that change the order in which a terminal shows the letters around them.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

#: A time of the API, whose fraction of a second says nothing to a person.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z")


def sanitized(text: str) -> str:
    """Return `text` without what controls a terminal or reorders letters; lines and tabs stay."""
    return "".join(
        letter
        for letter in text
        if letter in "\n\t"
        or not (letter < " " or "\x7f" <= letter <= "\x9f" or letter in _DIRECTIONS)
    )


def echo_foreign(text: str, *, nl: bool = True) -> None:
    """Print text of somebody else: as it is into a file or a pipe, made safe on a terminal."""
    click.echo(sanitized(text) if sys.stdout.isatty() else text, nl=nl)


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return `rows` under their column names, each column as wide as necessary.

    Cells may be texts of other people: each is one line that cannot control a terminal.
    """
    lines = [tuple(columns), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print `rows` under their column names."""
    click.echo(text_table(columns, tuple(rows)), nl=False)


def print_json(document: object, *, as_ascii: bool = False) -> None:
    """Print a document as JSON; with `as_ascii` other letters than ASCII are escaped."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=as_ascii))


def print_list(
    document: object,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    as_json: bool,
    as_ascii: bool = False,
) -> None:
    """Print a list as a table, or the document that it comes from as JSON."""
    if as_json:
        print_json(document, as_ascii=as_ascii)
    else:
        print_table(columns, rows)


def _cell(text: str) -> str:
    if time := _TIME.fullmatch(text):
        return f"{time[1]}Z"
    return sanitized(" ".join(text.splitlines()))
