"""Plain-text tables."""

from collections.abc import Sequence

from parley.cli.terminal_text import sanitized


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


def _cell(text: str) -> str:
    return sanitized(" ".join(text.splitlines()))
