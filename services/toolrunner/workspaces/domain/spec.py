"""What a workspace is made from and what it may do, as values that are kept on disk."""

from enum import StrEnum

import msgspec

from toolrunner.primitives.domain import WorkspaceId


class ForkMode(StrEnum):
    """How the files of a fork are made; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    WORKTREE = "worktree"
    OVERLAY = "overlay"
    COPY = "copy"


class SandboxLevel(StrEnum):
    """How far a node confines, weakest first; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    NONE = "none"
    UID = "uid"
    LANDLOCK = "landlock"
    NS = "ns"
    VM = "vm"


class NetworkAccess(StrEnum):
    """What may be reached; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class Profile(StrEnum):
    """What may be written; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    FULL = "full"


class Scratch(msgspec.Struct, frozen=True, tag="scratch"):
    """An empty directory with files to begin with, by path."""

    skeleton: dict[str, str] = {}


class Git(msgspec.Struct, frozen=True, tag="git"):
    """A repository.

    Attributes:
        url: Its address, without credential.
        ref: Branch, tag or commit to begin at; empty for the default branch.
        branch: Branch to work on; empty for none but the one to begin at.
        depth: Commits of history to bring; 0 for all.
        borrows: Whether objects are read from the node's mirror instead of copied.
    """

    url: str
    ref: str = ""
    branch: str = ""
    depth: int = 0
    borrows: bool = False


class Local(msgspec.Struct, frozen=True, tag="local"):
    """A directory that the node's administrator registered under a name."""

    directory: str
    has_overlay: bool = False


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """A copy of another workspace of this node."""

    parent_id: WorkspaceId
    parent_epoch: int
    mode: ForkMode = ForkMode.UNSPECIFIED


Source = Scratch | Git | Local | Fork


class Network(msgspec.Struct, frozen=True):
    """What a workspace may reach; what denies wins."""

    access: NetworkAccess = NetworkAccess.UNSPECIFIED
    presets: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()


class Limits(msgspec.Struct, frozen=True):
    """Bounds on what a workspace uses; 0 leaves one to the default."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    output_bytes: int = 0


class SecretGrant(msgspec.Struct, frozen=True):
    """A secret that a workspace may use; its value is asked for at each use."""

    name: str
    delivery: str
    hosts: tuple[str, ...] = ()
    header: str = ""
    variable: str = ""


class Policy(msgspec.Struct, frozen=True):
    """What may change while a workspace runs."""

    network: Network = Network()
    limits: Limits = Limits()
    secrets: tuple[SecretGrant, ...] = ()


class WorkspaceSpec(msgspec.Struct, frozen=True):
    """Everything needed to make a workspace.

    Attributes:
        source: What it begins with.
        setup_script: Run confined once the source is there; empty for none.
        setup_timeout_s: Longest time for it.
        environment: Declared variables of its processes.
        policy: What may change later.
        profile: The widest profile a call may ask for.
        sandbox_minimum: Weakest sandbox accepted; unspecified for the node's own minimum.
    """

    source: Source
    setup_script: str = ""
    setup_timeout_s: float = 600.0
    environment: dict[str, str] = {}
    policy: Policy = Policy()
    profile: Profile = Profile.UNSPECIFIED
    sandbox_minimum: SandboxLevel = SandboxLevel.UNSPECIFIED
