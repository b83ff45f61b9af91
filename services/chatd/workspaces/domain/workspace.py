"""The value type of a workspace: its state and everything that depends on it."""

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
    """The state of a workspace."""

    PENDING = "pending"  # Accepted, without a node yet.
    PREPARING = "preparing"
    READY = "ready"
    BUSY = "busy"  # Usable, with running processes.
    STOPPING = "stopping"
    STOPPED = "stopped"  # Its files are kept.
    DELETED = "deleted"
    FAILED = "failed"


USABLE: Final = frozenset({State.READY, State.BUSY})
#: States that count against the limit of live workspaces.
LIVE: Final = frozenset({State.PENDING, State.PREPARING, State.READY, State.BUSY, State.STOPPING})
#: States that require an action of a driver.
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
    """Why a workspace cannot be used, and whether creating it again may help."""

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
    """The resource usage of a workspace, as measured by its node."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    egress_bytes: int = 0


class TtlSource(StrEnum):
    """Where the lifetime of a workspace comes from."""

    TEMPLATE = "template"
    INSTALLATION = "installation"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The lifetime of a workspace; 0 means no end.

    Attributes:
        ttl_ms: From its start to its autostop.
        ttl_max_ms: From its start to the latest autostop that activity can reach.
        bump_ms: How far activity extends the autostop.
        retention_ms: How long the files of a stopped one are kept.
        is_ttl_fixed: Whether the template fixes `ttl_ms`, so that neither the installation nor a
            user changes it.
        source: Where `ttl_ms` comes from; None for templates, and if it was not recorded.
    """

    ttl_ms: int = 0
    ttl_max_ms: int = 0
    bump_ms: int = 3_600_000
    retention_ms: int = 7 * 24 * 3_600_000
    is_ttl_fixed: bool = False
    source: TtlSource | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace in which tools run.

    Attributes:
        epoch: Number of its placement; a node refuses lower ones.
        has_files: Whether it was prepared before, so that its node has its files.
        is_removing: Whether it is being deleted.
        is_scratch_of_chat: Whether a chat got it automatically; it has the id of that chat.
        warned_for: The deadline that its users were warned of, None for none.
        policy: Version of its network policy, limits and grants; incremented when they change.
        policy_told: The policy version that its node has applied.
        version: Incremented with every change.
    """

    id: WorkspaceId
    name: str
    owner_id: OwnerId
    kind: Kind
    spec: WorkspaceSpec
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
    def is_live(self) -> bool:
        """Whether it is not stopped; one that was stopped is not live while it is removed."""
        return self.state in LIVE and not (self.is_removing and self.delete_at is not None)

    @property
    def is_usable(self) -> bool:
        """Return whether tools can run in it."""
        return self.state in USABLE

    @property
    def is_gone(self) -> bool:
        """Return whether it is deleted or being deleted, so that it cannot be read."""
        return self.is_removing or self.state is State.DELETED
