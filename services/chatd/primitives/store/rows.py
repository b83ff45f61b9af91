"""A result row with access by column name."""

from typing import Any, Protocol


class Row(Protocol):
    """A row with access by column name."""

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of a column."""
        ...
