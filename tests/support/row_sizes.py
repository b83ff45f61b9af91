"""How large the rows about many commands and long stops are: small, or as the fault matrix asks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RowSizes:
    """Sizes of rows.

    Attributes:
        commands: Of row H24.
        calls: Of row H10.
        stop_s: How long row A18 stops a toolrunner.
    """

    commands: int = 150
    calls: int = 450
    stop_s: float = 1.0


FULL_SIZE = RowSizes(commands=10_000, calls=5_000, stop_s=60.0)
