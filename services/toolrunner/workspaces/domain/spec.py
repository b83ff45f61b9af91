"""The workspace spec: source, setup and policy, as stored on disk; directories of the node."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from toolrunner.primitives.domain import WorkspaceId

NAME_CHARACTERS_MAX: Final = 64
OVERLAY_ONLY: Final = "overlay"


class ForkMode(StrEnum):
    """How the files of a fork are made; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    WORKTREE = "worktree"
    OVERLAY = "overlay"
    COPY = "copy"


class SandboxLevel(StrEnum):
    """The sandbox levels, weakest first; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    NONE = "none"
    UID = "uid"
    LANDLOCK = "landlock"
    NS = "ns"
    VM = "vm"


class NetworkAccess(StrEnum):
    """Which network addresses may be reached; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class Profile(StrEnum):
    """Which files may be written; names are those of the proto."""

    UNSPECIFIED = "unspecified"
    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    FULL = "full"


class Scratch(msgspec.Struct, frozen=True, tag="scratch"):
    """An empty directory with initial files, by path."""

    skeleton: dict[str, str] = {}


class Git(msgspec.Struct, frozen=True, tag="git"):
    """A repository.

    Attributes:
        url: Its URL, without credentials.
        ref: Branch, tag or commit to start from; empty for the default branch.
        branch: Branch to create; empty to stay on the one to start from.
        depth: Commits of history to fetch; 0 for all.
        is_worktree: Whether objects are read from the node's mirror instead of copied.
    """

    url: str
    ref: str = ""
    branch: str = ""
    depth: int = 0
    is_worktree: bool = msgspec.field(default=False, name="borrows")


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
    """The network policy of a workspace; denied hosts override allowed ones."""

    access: NetworkAccess = NetworkAccess.UNSPECIFIED
    presets: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()


class Limits(msgspec.Struct, frozen=True):
    """The limits of a workspace; 0 for the default."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    output_bytes: int = 0


class SecretGrant(msgspec.Struct, frozen=True):
    """A secret that a workspace may use; its value is requested at each use."""

    name: str
    delivery: str
    hosts: tuple[str, ...] = ()
    header: str = ""
    variable: str = ""


class Policy(msgspec.Struct, frozen=True):
    """The part of a spec that may change while a workspace runs."""

    network: Network = Network()
    limits: Limits = Limits()
    secrets: tuple[SecretGrant, ...] = ()


class WorkspaceSpec(msgspec.Struct, frozen=True):
    """The specification of a workspace.

    Attributes:
        source: The source of its files.
        setup_script: Run confined once the source is complete; empty for none.
        setup_timeout_s: Its timeout.
        environment: Declared variables of its processes.
        policy: The part that may change later.
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


@dataclass(frozen=True, slots=True)
class LocalDirectory:
    """A directory with the name that templates use.

    Attributes:
        name: The name.
        path: Its path, which is not sent to other services.
        is_overlay_only: Whether it may be used only under an overlay.
    """

    name: str
    path: Path
    is_overlay_only: bool = False

    @classmethod
    def parse(cls, text: str) -> "LocalDirectory":
        """Parse `name=/path` or `name=/path;overlay`.

        Raises:
            ValueError: It is not valid.
        """
        name, _, rest = text.partition("=")
        path, _, flag = rest.partition(";")
        is_named = 1 <= len(name) <= NAME_CHARACTERS_MAX
        if not is_named or not path.startswith("/") or flag not in ("", OVERLAY_ONLY):
            raise ValueError(f"is {text!r}, give name=/path, or name=/path;overlay")
        return cls(name, Path(path), flag == OVERLAY_ONLY)

    def __str__(self) -> str:
        return f"{self.name}={self.path}{';overlay' if self.is_overlay_only else ''}"
