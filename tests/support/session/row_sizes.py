"""How large the rows about many commands and long stops are: small, or as the fault matrix asks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RowSizes:
    """Sizes of rows.

    Attributes:
        commands: Of row H24.
        calls: Of row H10.
        stop_s: How long row A18 stops a toolrunner.
        trials: Calls that a fault meets, of rows A12, A13, A14, A18 and A31.
        stress_s: How long lost wake-ups are hunted, for each seed.
        line_mib: Length of one line that a process prints.
        neighbour_rounds: Commands of promise P27, for each way to misbehave.
        stopped_workspaces: Of row E23.
        stopped_processes: In each of them.
        spin_s: How long all processors are kept busy in row E3.
        swaps: Links that are swapped in row E15.
        wait_s: How long one wait goes through every layer.
        is_full: Whether these are as the matrix asks, so that its figures hold.
    """

    commands: int = 150
    calls: int = 450
    stop_s: float = 1.0
    trials: int = 10
    stress_s: float = 0.0
    line_mib: int = 24
    neighbour_rounds: int = 25
    stopped_workspaces: int = 10
    stopped_processes: int = 5
    spin_s: float = 1.5
    swaps: int = 2_000
    wait_s: int = 3
    is_full: bool = False


FULL_SIZE = RowSizes(
    commands=10_000,
    calls=5_000,
    stop_s=60.0,
    trials=200,
    stress_s=90.0,
    line_mib=1024,
    neighbour_rounds=300,
    stopped_workspaces=200,
    spin_s=60.0,
    swaps=1_000_000,
    wait_s=300,
    is_full=True,
)
