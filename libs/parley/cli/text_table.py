"""Plain-text tables."""

from collections.abc import Sequence


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return `rows` under their column names, each column as wide as necessary."""
    lines = [tuple(columns), *(tuple(row) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )
