"""A row of a result, by the names of its columns."""

from typing import Any, Protocol


class Row(Protocol):
    """Columns by their names."""

    def __getitem__(self, column: str) -> Any:
        """Return the value of a column, of whatever type it has."""
        ...
