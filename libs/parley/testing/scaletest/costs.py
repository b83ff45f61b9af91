"""The CPU time and memory of a run on Parley's machine, by service; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """The resource usage of the processes of a service at one time."""

    processes: int
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """The cost of a service.

    Attributes:
        processes: The number of processes.
        cpu_ms_per_turn: CPU time of all of them.
        cores: The average number of busy cores.
        memory_mib: Memory of all of them together at the end.
    """

    processes: int
    cpu_ms_per_turn: float | None
    cores: float
    memory_mib: float


@dataclass(frozen=True, slots=True)
class DatabaseCost:
    """The activity of the database, background work included; None for unknown values.

    Attributes:
        statements_per_turn: Statements executed by services, from the server's log.
        commits_per_turn: Transactions that wrote.
        connections_peak: The maximum number of connections of services, sampled every second.
        connections_max: How many the server allows.
    """

    statements_per_turn: float | None
    commits_per_turn: float | None
    connections_peak: int
    connections_max: int


@dataclass(frozen=True, slots=True)
class DatabaseActivity:
    """The activity of the database during a run."""

    statements: int | None
    commits: int
    connections_peak: int
    connections_max: int


@dataclass(frozen=True, slots=True)
class MachineTime:
    """The CPU time of the whole machine until one time."""

    cores: int
    memory_bytes: int
    busy_s: float


@dataclass(frozen=True, slots=True)
class MachineCost:
    """The machine of a run, and its load.

    Attributes:
        cores: The number of its cores.
        memory_mib: Its memory.
        busy_cores: The average number of busy cores.
        elsewhere_cores: The part of them used by neither Parley nor this test.
    """

    cores: int
    memory_mib: float
    busy_cores: float
    elsewhere_cores: float


def machine_cost(
    before: MachineTime, after: MachineTime, own_cores: float, *, wall_s: float
) -> MachineCost:
    """Return the load of the machine between two samples, given the part used by the test."""
    busy = (after.busy_s - before.busy_s) / wall_s if wall_s else 0.0
    return MachineCost(
        after.cores,
        round(after.memory_bytes / MIB),
        round(busy, 2),
        round(max(0.0, busy - own_cores), 2),
    )


def costs(
    before: Mapping[str, Usage], after: Mapping[str, Usage], *, turns: int, wall_s: float
) -> dict[str, ServiceCost]:
    """Return the cost of each service between two samples; a restarted one counts from zero."""
    found = {}
    for service, now in after.items():
        then = before.get(service)
        spent_s = now.cpu_s - (then.cpu_s if then is not None else 0)
        spent_s = now.cpu_s if spent_s < 0 else spent_s
        found[service] = ServiceCost(
            now.processes,
            round(spent_s * 1000 / turns, 2) if turns else None,
            round(spent_s / wall_s, 2) if wall_s else 0.0,
            round(now.memory_bytes / MIB, 1),
        )
    return found


def database_cost(activity: DatabaseActivity | None, *, turns: int) -> DatabaseCost | None:
    """Return the activity of the database per turn."""
    if activity is None:
        return None
    statements = activity.statements
    return DatabaseCost(
        round(statements / turns, 2) if statements is not None and turns else None,
        round(activity.commits / turns, 2) if turns else None,
        activity.connections_peak,
        activity.connections_max,
    )
