"""`processes.json`: the processes a supervisor started, for other commands and later starts."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parley.cli.home.layout import write_private
from parley.cli.stack.plan import Readiness, Sign


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies a process among all since boot, as pids are reused."""

    pid: int
    started_at: float


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process of the stack."""

    name: str
    service: str
    identity: ProcessIdentity
    address: str
    restarts: int
    readiness: tuple[Readiness, ...]
    #: The URL of its metrics; None if it has none.
    metrics: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """The supervisor and its processes, in the order of their start."""

    supervisor: ProcessIdentity | None = None
    http: str | None = None
    processes: tuple[ProcessRecord, ...] = ()
    #: The public origin, which may be that of a proxy in front of it.
    public_url: str | None = None


def save(table: ProcessTable, path: Path) -> None:
    """Write `table` to `path`."""
    write_private(path, json.dumps(asdict(table), indent=2) + "\n")


def load(path: Path) -> ProcessTable:
    """Read the table at `path`; a missing or damaged one counts as empty."""
    try:
        found = json.loads(path.read_text())
        supervisor = found["supervisor"]
        return ProcessTable(
            supervisor=None if supervisor is None else ProcessIdentity(**supervisor),
            http=found["http"],
            processes=tuple(_record(record) for record in found["processes"]),
            public_url=found.get("public_url"),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ProcessTable()


def _record(found: dict[str, Any]) -> ProcessRecord:
    return ProcessRecord(
        name=found["name"],
        service=found["service"],
        identity=ProcessIdentity(**found["identity"]),
        address=found["address"],
        restarts=found["restarts"],
        readiness=tuple(
            Readiness(Sign(sign["sign"]), sign["target"]) for sign in found["readiness"]
        ),
        metrics=found.get("metrics"),
    )
