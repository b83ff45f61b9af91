"""The bodies of requests about templates and workspaces."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from gateway.api.inputs.chats import OptionalUuid, Uuid

Text = Annotated[str, msgspec.Meta(max_length=64 * 1024)]
Name = Annotated[str, msgspec.Meta(max_length=64)]
Id = Annotated[str, msgspec.Meta(max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=365 * 24 * 3_600_000)]
Values = Annotated[dict[str, str], msgspec.Meta(max_length=64)]
Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=256)]


class WorkspaceKind(StrEnum):
    """How a workspace is made."""

    SCRATCH = "scratch"
    GIT = "git"
    LOCAL = "local"


class ParameterType(StrEnum):
    """What a parameter holds."""

    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    CHOICE = "choice"


class NetworkAccess(StrEnum):
    """What may be reached."""

    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class SandboxLevel(StrEnum):
    """How strong confinement must be."""

    NONE = "none"
    UID = "uid"
    LANDLOCK = "landlock"
    NS = "ns"
    VM = "vm"


class ForkMode(StrEnum):
    """How the files of a fork are made."""

    WORKTREE = "worktree"
    OVERLAY = "overlay"
    COPY = "copy"


class MergeStrategy(StrEnum):
    """What becomes of a path that both sides changed."""

    REPORT = "report"
    KEEP_PARENT = "keep_parent"
    TAKE_FORK = "take_fork"


class ScratchInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an empty directory is made."""

    skeleton: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}


class GitInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a repository is brought in."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    ref: Annotated[str, msgspec.Meta(max_length=255)] = ""
    branch: Annotated[str, msgspec.Meta(max_length=255)] = ""
    depth: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    worktree: bool = False


class LocalInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which directory of a node is used."""

    directory: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    overlay: bool = False


class ParameterInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something to choose when a workspace is made."""

    name: Name
    description: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    type: ParameterType = ParameterType.STRING
    required: bool = False
    default_value: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    options: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    pattern: Annotated[str, msgspec.Meta(max_length=500)] = ""
    mutable: bool = False


class PresetInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameter values under a name."""

    name: Name
    preset_id: Id = ""
    is_default: bool = False
    parameters: Values = {}


class NetworkInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The network of a workspace."""

    access: NetworkAccess = NetworkAccess.NONE
    presets: Names = ()
    allowed_hosts: Names = ()
    denied_hosts: Names = ()


class LimitsInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of a workspace; 0 leaves one to the node."""

    cpu_millicores: Count = 0
    memory_bytes: Count = 0
    pids: Annotated[int, msgspec.Meta(ge=0, le=32768)] = 0
    disk_bytes: Count = 0
    inodes: Count = 0
    output_bytes: Count = 0


class NewTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /templates."""

    name: Name
    kind: WorkspaceKind
    display_name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    description: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    readme: Text = ""
    scratch: ScratchInput | None = None
    git: GitInput | None = None
    local: LocalInput | None = None
    parameters: Annotated[tuple[ParameterInput, ...], msgspec.Meta(max_length=64)] = ()
    presets: Annotated[tuple[PresetInput, ...], msgspec.Meta(max_length=32)] = ()
    setup_script: Text = ""
    setup_timeout_ms: Milliseconds = 0
    network: NetworkInput = NetworkInput()
    limits: LimitsInput = LimitsInput()
    group_ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    enabled_for_agents: bool = True
    ttl_ms: Milliseconds = 0
    ttl_max_ms: Milliseconds = 0
    bump_ms: Milliseconds = 0
    retention_ms: Milliseconds = 0
    sandbox_minimum: SandboxLevel | None = None


class TemplatePatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /templates/{template_id}; what is left out stays."""

    name: Name | UnsetType = UNSET
    kind: WorkspaceKind | UnsetType = UNSET
    display_name: Annotated[str, msgspec.Meta(max_length=100)] | UnsetType = UNSET
    description: Annotated[str, msgspec.Meta(max_length=2000)] | UnsetType = UNSET
    readme: Text | UnsetType = UNSET
    scratch: ScratchInput | UnsetType = UNSET
    git: GitInput | UnsetType = UNSET
    local: LocalInput | UnsetType = UNSET
    parameters: Annotated[tuple[ParameterInput, ...], msgspec.Meta(max_length=64)] | UnsetType = (
        UNSET
    )
    presets: Annotated[tuple[PresetInput, ...], msgspec.Meta(max_length=32)] | UnsetType = UNSET
    setup_script: Text | UnsetType = UNSET
    setup_timeout_ms: Milliseconds | UnsetType = UNSET
    network: NetworkInput | UnsetType = UNSET
    limits: LimitsInput | UnsetType = UNSET
    group_ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] | UnsetType = UNSET
    enabled_for_agents: bool | UnsetType = UNSET
    ttl_ms: Milliseconds | UnsetType = UNSET
    ttl_max_ms: Milliseconds | UnsetType = UNSET
    bump_ms: Milliseconds | UnsetType = UNSET
    retention_ms: Milliseconds | UnsetType = UNSET
    sandbox_minimum: SandboxLevel | UnsetType | None = UNSET


class NewWorkspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /workspaces."""

    template_id: Uuid
    name: Name = ""
    parameters: Values = {}
    preset_id: Id = ""
    ttl_ms: Milliseconds | None = None
    chat_id: OptionalUuid = ""
    secret_names: Annotated[tuple[str, ...], msgspec.Meta(max_length=32)] = ()


class StartInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /workspaces/{workspace_id}/start; it may be left out."""

    parameters: Values = {}


class StopInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /workspaces/{workspace_id}/stop; it may be left out."""

    grace_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] | None = None


class ForkInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /workspaces/{workspace_id}/fork; it may be left out."""

    mode: ForkMode | None = None
    name: Name = ""
    chat_id: OptionalUuid = ""


class MergeInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /workspaces/{workspace_id}/merge; it may be left out."""

    strategy: MergeStrategy = MergeStrategy.REPORT
    paths: Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)] = ()
    dry_run: bool = False


class PolicyInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PUT /workspaces/{workspace_id}/policy; what is left out stays as it is."""

    network: NetworkInput | None = None
    limits: LimitsInput | None = None


class TtlInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PUT /workspaces/{workspace_id}/ttl; 0 for no autostop."""

    ttl_ms: Milliseconds
