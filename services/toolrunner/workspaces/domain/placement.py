"""The placement of a workspace on this node: its epoch and its state."""

from datetime import datetime
from enum import StrEnum

import msgspec

from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.domain.spec import ForkMode, WorkspaceSpec


class HostState(StrEnum):
    """The state of a workspace on this node."""

    PREPARING = "preparing"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    REMOVING = "removing"
    REMOVED = "removed"  # Only its placement epoch is kept.


#: A workspace in one of these counts as load.
LIVE = frozenset({HostState.PREPARING, HostState.READY, HostState.STOPPING})
#: Nothing may create the directory of a workspace in one of these.
GONE = frozenset({HostState.REMOVING, HostState.REMOVED})


class FailureKind(StrEnum):
    """Why a workspace cannot be used; names are those of the proto."""

    SOURCE = "source"
    SETUP = "setup"
    NO_SPACE = "no_space"
    SANDBOX = "sandbox"
    INTERNAL = "internal"


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """Why a workspace cannot be used, and whether a retry may help."""

    kind: FailureKind
    message: str
    is_recreatable: bool = False


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The result of a successful preparation."""

    git_branch: str = ""
    git_commit: str = ""
    fork_mode: ForkMode = ForkMode.UNSPECIFIED
    duration_ms: int = 0


Outcome = Prepared | Failure


class Placement(msgspec.Struct, frozen=True):
    """One workspace on this node.

    Attributes:
        workspace_id: The workspace.
        epoch: The highest placement epoch received.
        owner_id: The user it belongs to.
        state: Its state.
        spec: Its workspace spec.
        root: The directory of its files if not in its own directory; else empty.
        is_sourced: Whether its files are complete.
        is_set_up: Whether its setup script has succeeded.
        attempt: The number of its preparation attempt.
        log_start: Lines of its log before this attempt.
        must_exist: Whether its files have to exist already.
        prepared: The result of the preparation.
        failure: Why it failed.
        changed_at: When the state last changed.
        readable: Directories outside that its processes must be able to read.
    """

    workspace_id: WorkspaceId
    epoch: int
    owner_id: str
    state: HostState
    spec: WorkspaceSpec = msgspec.field(name="recipe")
    changed_at: datetime
    root: str = ""
    is_sourced: bool = False
    is_set_up: bool = False
    attempt: int = 1
    log_start: int = 0
    must_exist: bool = False
    prepared: Prepared | None = None
    failure: Failure | None = None
    readable: tuple[str, ...] = ()


class LogLine(msgspec.Struct, frozen=True):
    """A line of the output of a preparation."""

    sequence: int
    logged_at: datetime
    stage: str
    text: str


class Usage(msgspec.Struct, frozen=True):
    """The disk usage of a workspace."""

    disk_bytes: int
    inodes: int
    measured_at: datetime


class Hosted(msgspec.Struct, frozen=True):
    """A workspace as its node reports it."""

    workspace_id: WorkspaceId
    epoch: int
    state: HostState
    usage: Usage | None = None
    processes: int = 0
    attachments: int = 0
    waits: int = 0
    last_used_at: datetime | None = None
    failure: Failure | None = None
