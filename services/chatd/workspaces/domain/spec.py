"""The workspace spec: everything that its node needs, with all parameters filled in."""

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
    """The source of a workspace."""

    SCRATCH = "scratch"
    GIT = "git"
    LOCAL = "local"
    FORK = "fork"


class Network(StrEnum):
    """The network access of a workspace."""

    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class Profile(StrEnum):
    """The file access of a workspace."""

    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """The network policy of a workspace; denied hosts take precedence over allowed ones."""

    access: Network = Network.NONE
    presets: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a workspace; 0 leaves one to the node."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    output_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a workspace; which fields are used depends on its kind.

    Attributes:
        skeleton: Files of a scratch workspace by their paths.
        url: Repository of a git workspace.
        ref: Branch, tag or commit to check out; empty for the default branch.
        branch: Branch to work on.
        depth: Commits of history to fetch; 0 for all.
        is_worktree: Whether it is a worktree of the node's mirror.
        directory: Name of the registered directory of a local workspace.
        is_overlay: Whether changes are written to an overlay and not to that directory.
        parent_id: The workspace that a fork is a copy of.
        parent_epoch: Placement epoch of that workspace.
        fork_mode: How it is copied; empty for the best available mode.
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
    """Everything a node needs to create a workspace."""

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
