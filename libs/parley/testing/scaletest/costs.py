"""What a run cost the machine that Parley runs on: processor time and memory by service; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a service have used at one moment."""

    processes: int
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """What a service cost.

    Attributes:
        processes: How many there are.
        cpu_ms_per_turn: Processor time of all of them.
        cores: How many cores they kept busy.
        memory_mib: Memory of all of them together at the end.
    """

    processes: int
    cpu_ms_per_turn: float | None
    cores: float
    memory_mib: float


@dataclass(frozen=True, slots=True)
class DatabaseCost:
    """What the database did, background work included; None for what cannot be counted there.

    Attributes:
        statements_per_turn: Statements that services executed, by the server's log.
        commits_per_turn: Transactions that wrote something.
        connections_peak: Connections of services at once, looked at every second.
        connections_max: How many the server allows.
    """

    statements_per_turn: float | None
    commits_per_turn: float | None
    connections_peak: int
    connections_max: int


@dataclass(frozen=True, slots=True)
class DatabaseActivity:
    """What the database did in a run."""

    statements: int | None
    commits: int
    connections_peak: int
    connections_max: int


@dataclass(frozen=True, slots=True)
class MachineTime:
    """What the whole machine has done until one moment."""

    cores: int
    memory_bytes: int
    busy_s: float


@dataclass(frozen=True, slots=True)
class MachineCost:
    """The machine of a run, and how busy it was.

    Attributes:
        cores: How many it has.
        memory_mib: How much it has.
        busy_cores: How many of them worked.
        elsewhere_cores: How many of these worked for something else than Parley and this test.
    """

    cores: int
    memory_mib: float
    busy_cores: float
    elsewhere_cores: float


def machine_cost(
    before: MachineTime, after: MachineTime, own_cores: float, *, wall_s: float
) -> MachineCost:
    """Return how busy the machine was between two looks, of which so much was ours."""
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
    """Return what each service cost between two looks; one that was started anew counts anew."""
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
    """Return what the database did per turn."""
    if activity is None:
        return None
    statements = activity.statements
    return DatabaseCost(
        round(statements / turns, 2) if statements is not None and turns else None,
        round(activity.commits / turns, 2) if turns else None,
        activity.connections_peak,
        activity.connections_max,
    )
