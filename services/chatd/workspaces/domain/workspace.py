"""A workspace as a value: where it is in its life, and everything that depends on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.spec import Kind, WorkspaceSpec

WorkspaceId = NewType("WorkspaceId", str)
NodeId = NewType("NodeId", str)


class State(StrEnum):
    """Where a workspace is in its life."""

    PENDING = "pending"  # Accepted, without a node yet.
    PREPARING = "preparing"
    READY = "ready"
    BUSY = "busy"  # Usable, and something runs in it.
    STOPPING = "stopping"
    STOPPED = "stopped"  # Its files are kept.
    DELETED = "deleted"
    FAILED = "failed"


USABLE: Final = frozenset({State.READY, State.BUSY})
#: What counts against the limit of live workspaces.
LIVE: Final = frozenset({State.PENDING, State.PREPARING, State.READY, State.BUSY, State.STOPPING})
#: Somebody has to do something before these can be anything else.
DRIVEN: Final = frozenset({State.PENDING, State.PREPARING, State.STOPPING})


class FailureKind(StrEnum):
    """Why a workspace cannot be used."""

    NO_NODE = "no_node"
    SOURCE = "source"
    SETUP = "setup"
    NODE_LOST = "node_lost"
    NO_SPACE = "no_space"
    SANDBOX = "sandbox"
    INTERNAL = "internal"


class StopReason(StrEnum):
    """Why a workspace stopped."""

    REQUESTED = "requested"
    AUTOSTOP = "autostop"
    DRAIN = "drain"
    QUOTA = "quota"
    OWNER_GONE = "owner_gone"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a workspace cannot be used, and whether making it again may help."""

    kind: FailureKind
    message: str
    is_recreatable: bool = True


NODE_LOST: Final = Failure(
    FailureKind.NODE_LOST,
    "The machine that it was on stopped answering. Start it to have it made again elsewhere; "
    "files that were nowhere else are lost unless the machine comes back.",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a workspace uses, as its node measured it."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    egress_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a workspace lives by itself; 0 stands for no end.

    Attributes:
        ttl_ms: From its start to its autostop.
        ttl_max_ms: From its start to the latest autostop that activity can reach.
        bump_ms: How far activity pushes the autostop.
        retention_ms: How long a stopped one keeps its files.
    """

    ttl_ms: int = 0
    ttl_max_ms: int = 0
    bump_ms: int = 3_600_000
    retention_ms: int = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Workspace:
    """A place where tools work.

    Attributes:
        epoch: Number of its placement; a node refuses lower ones.
        has_files: Whether it was prepared before, so that its node has its files.
        is_removing: Whether it is on its way to be deleted.
        is_scratch_of_chat: Whether a chat got it without asking; it has the id of that chat.
        warned_for: The deadline that its people were warned of, None for none.
        policy: Number of what it may reach, use and know; grows when that changes.
        policy_told: The number that its node goes by.
        version: Grows with every change.
    """

    id: WorkspaceId
    name: str
    owner_id: OwnerId
    kind: Kind
    recipe: WorkspaceSpec
    lifetime: Lifetime
    created_at: datetime
    last_used_at: datetime
    template_id: str = ""
    template_name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    parent_id: str = ""
    state: State = State.PENDING
    failure: Failure | None = None
    stop_reason: StopReason | None = None
    node_id: NodeId | None = None
    epoch: int = 0
    has_files: bool = False
    is_removing: bool = False
    is_scratch_of_chat: bool = False
    root_path: str = ""
    git_branch: str = ""
    sandbox_level: str = ""
    usage: Usage | None = None
    deadline_at: datetime | None = None
    max_deadline_at: datetime | None = None
    warned_for: datetime | None = None
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    delete_at: datetime | None = None
    policy: int = 0
    policy_told: int = 0
    version: int = 1

    @property
    def is_usable(self) -> bool:
        """Return whether tools can work in it."""
        return self.state in USABLE

    @property
    def is_gone(self) -> bool:
        """Return whether it is deleted or being deleted, so that nothing of it can be read."""
        return self.is_removing or self.state is State.DELETED
