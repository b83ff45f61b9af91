"""How a workspace is made: everything that its node needs, with all parameters filled in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
HOST: Final = rf"(?:(?:\*\.{LABEL}\.)?{LABEL}(?:\.{LABEL})*|\[[0-9a-f:.]+\])"
PORT: Final = r":[1-9][0-9]{0,4}"
#: `host`, `host:port`, `*.host`, `*.host:port` or `tcp://host:port`, with a name or an address.
HOST_PATTERN: Final = re.compile(rf"{HOST}(?:{PORT})?|tcp://{HOST}{PORT}", re.IGNORECASE | re.ASCII)


class Kind(StrEnum):
    """How a workspace is made."""

    SCRATCH = "scratch"
    GIT = "git"
    LOCAL = "local"
    FORK = "fork"


class Network(StrEnum):
    """What may be reached."""

    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class Profile(StrEnum):
    """What may be written."""

    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """The network of a workspace; what is denied wins over what is allowed."""

    access: Network = Network.NONE
    presets: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a workspace uses; 0 leaves one to the node."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    output_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What a workspace begins with; which fields say something depends on its kind.

    Attributes:
        skeleton: Files of a scratch workspace by their paths.
        url: Repository of a git workspace.
        ref: Branch, tag or commit to begin at; empty for the default branch.
        branch: Branch to work on.
        depth: Commits of history to bring; 0 for all.
        is_worktree: Whether it is a worktree of the node's mirror.
        directory: Name of the registered directory of a local workspace.
        is_overlay: Whether changes leave that directory alone.
        parent_id: The workspace that a fork is a copy of.
        parent_epoch: Number of that one's placement.
        fork_mode: How; empty for the best there is.
    """

    skeleton: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    ref: str = ""
    branch: str = ""
    depth: int = 0
    is_worktree: bool = False
    directory: str = ""
    is_overlay: bool = False
    parent_id: str = ""
    parent_epoch: int = 0
    fork_mode: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceSpec:
    """Everything a node needs to make a workspace."""

    kind: Kind
    source: Source = field(default_factory=Source)
    setup_script: str = ""
    setup_timeout_ms: int = 600_000
    environment: Mapping[str, str] = field(default_factory=dict)
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    limits: Limits = field(default_factory=Limits)
    profile: Profile = Profile.FULL
    sandbox_minimum: str = ""
    secret_names: tuple[str, ...] = ()
