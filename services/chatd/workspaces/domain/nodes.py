"""The machines that host workspaces, and the selection of one for a workspace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from chatd.workspaces.domain.errors import NoNode
from chatd.workspaces.domain.spec import Kind, WorkspaceSpec
from chatd.workspaces.domain.workspace import NodeId

HEARTBEAT_S: Final = 10.0
LOST_AFTER_HEARTBEATS: Final = timedelta(seconds=45)
#: Sandbox levels as a node's probe reports them, the weakest first.
LEVELS: Final = ("none", "uid", "landlock", "ns", "vm")
#: A node with less free disk space gets no more workspaces.
DISK_FREE_BYTES_MIN: Final = 256 * 1024**2
NO_COMMANDS: Final = "they cannot run commands now"


class NodeState(StrEnum):
    """The state of a node."""

    ACTIVE = "active"
    DRAINING = "draining"
    LOST = "lost"
    GONE = "gone"


#: Not waited for; their workspaces are marked as failed until the node registers again.
OUT_OF_REACH: Final = frozenset({NodeState.LOST, NodeState.GONE})


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of a node; 0 means unknown."""

    workspaces: int = 0
    cpu_millicores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """The current load of a node.

    Attributes:
        problem: Why it cannot run commands; empty if it can. It gets no workspaces meanwhile.
    """

    workspaces: int = 0
    processes: int = 0
    cpu_millicores: int = 0
    memory_bytes: int = 0
    disk_free_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that a node offers to local workspaces."""

    name: str
    is_overlay_only: bool = False
    has_overlay: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that hosts workspaces.

    Attributes:
        sandbox: The result of its probe, as JSON that is only shown.
        placed: Workspaces that were placed on it and are not stopped; newer than its own count.
        is_static: Whether it is only configured in the settings and does not register itself.
    """

    id: NodeId
    address: str
    name: str = ""
    state: NodeState = NodeState.ACTIVE
    capacity: Capacity = field(default_factory=Capacity)
    load: Load = field(default_factory=Load)
    sandbox_level: str = ""
    sandbox: str = "{}"
    labels: Mapping[str, str] = field(default_factory=dict)
    directories: tuple[Directory, ...] = ()
    mirrors: tuple[str, ...] = ()
    journal_generation: str = ""
    registration_epoch: int = 0
    version: str = ""
    registered_at: datetime | None = None
    last_seen_at: datetime | None = None
    drain_at: datetime | None = None
    is_leaving: bool = False
    placed: int = 0
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """The requirements of a workspace for its node.

    Attributes:
        near: The node it must be on, because its source is there.
        avoid: Nodes that just failed to create it.
        is_patient: Whether it waits for capacity on a full node, and for one that cannot run
            commands.
    """

    kind: Kind
    sandbox_minimum: str = ""
    url: str = ""
    directory: str = ""
    is_overlay: bool = False
    near: NodeId | None = None
    avoid: frozenset[NodeId] = frozenset()
    is_patient: bool = False


def need_of(spec: WorkspaceSpec, near: NodeId | None = None) -> Need:
    """Return the node requirements of a workspace spec."""
    source = spec.source
    return Need(
        kind=spec.kind,
        sandbox_minimum=spec.sandbox_minimum,
        url=source.url,
        directory=source.directory,
        is_overlay=source.is_overlay,
        near=near,
    )


def choose(nodes: Iterable[Node], need: Need) -> Node:
    """Return the node for a workspace.

    Of the suitable nodes: one with a mirror of its repository, unless it is much fuller than
    another; otherwise the least loaded. Ties are broken by id, so that the choice is deterministic.

    Raises:
        NoNode: none is suitable; the cause is what most of them lack.
    """
    known = list(nodes)
    if not known:
        raise NoNode("none is known; start a toolrunner")
    fitting = [node for node in known if (_misfit(node, need)) is None]
    if not fitting:
        causes = [cause for node in known if (cause := _misfit(node, need)) is not None]
        raise NoNode(max(sorted(set(causes)), key=causes.count))
    tried = [node for node in fitting if node.id not in need.avoid] or fitting
    return min(tried, key=lambda node: (bool(node.load.problem), _weight(node, need), node.id))


def fullness(node: Node) -> float:
    """Return the load of a node, from 0 to 1 and above, by its most used resource."""
    load, capacity = node.load, node.capacity
    shares = [
        _share(max(load.workspaces, node.placed), capacity.workspaces),
        _share(load.cpu_millicores, capacity.cpu_millicores),
        _share(load.memory_bytes, capacity.memory_bytes),
        _share(capacity.disk_bytes - load.disk_free_bytes, capacity.disk_bytes),
    ]
    # Without a known capacity the number of workspaces still orders the nodes.
    return max(shares) or max(load.workspaces, node.placed) / 1_000_000


#: A mirror avoids a clone, which justifies a somewhat fuller machine.
MIRROR_WORTH: Final = 0.25


def _weight(node: Node, need: Need) -> float:
    has_mirror = bool(need.url) and need.url in node.mirrors
    return fullness(node) - (MIRROR_WORTH if has_mirror else 0.0)


def _misfit(node: Node, need: Need) -> str | None:
    """Return why a node is not suitable for a workspace, None if it is."""
    if node.state is not NodeState.ACTIVE:
        return "the machines that are known are away or being taken out"
    if need.near is not None and node.id != need.near:
        return "the machine that has what it is made from cannot take it"
    if need.sandbox_minimum and not _confines(node, need.sandbox_minimum):
        return f"none confines at level {need.sandbox_minimum} or better"
    if node.load.problem and not need.is_patient:
        return NO_COMMANDS
    is_full = 0 < node.capacity.workspaces <= node.placed
    if is_full and not need.is_patient:
        return "all are full"
    if node.capacity.disk_bytes and node.load.disk_free_bytes < DISK_FREE_BYTES_MIN:
        return "their disks are full"
    if need.kind is Kind.LOCAL and not node.is_static and not _offers(node, need):
        return f"none offers the directory {need.directory}"
    return None


def _confines(node: Node, minimum: str) -> bool:
    # The capabilities of a node from the settings are unknown here; it refuses if they do not
    # suffice.
    if node.is_static or minimum not in LEVELS:
        return True
    return node.sandbox_level in LEVELS and LEVELS.index(node.sandbox_level) >= LEVELS.index(
        minimum
    )


def _offers(node: Node, need: Need) -> bool:
    return any(
        each.name == need.directory
        and (need.is_overlay or not each.is_overlay_only)
        and (each.has_overlay or not need.is_overlay)
        for each in node.directories
    )


def _share(used: int, whole: int) -> float:
    return max(0, used) / whole if whole > 0 else 0.0
