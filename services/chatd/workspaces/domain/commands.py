"""The commands and reports that change the state of a workspace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.spec import Limits, NetworkPolicy
from chatd.workspaces.domain.workspace import Failure, NodeId, State, StopReason, Usage


@dataclass(frozen=True, slots=True)
class NewWorkspace:
    """A request for a workspace.

    Attributes:
        key: The idempotency key, unique for this owner.
        body_hash: Hash of the request, so that the same key with another body is refused.
        ttl_ms: Lifetime, None for the default.
        chat_id: The chat that will use it; empty for none.
    """

    owner_id: OwnerId
    key: str
    body_hash: bytes
    template_id: str
    name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    preset_id: str = ""
    ttl_ms: int | None = None
    chat_id: str = ""
    secret_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewFork:
    """A request for a copy of a workspace."""

    owner_id: OwnerId
    key: str
    body_hash: bytes
    source_id: str
    mode: str = ""
    name: str = ""
    chat_id: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Assign it to a node.

    Attributes:
        after: The epoch that this placement must follow, None for any; after another one the
            command is stale.
        parent_epoch: Placement epoch of the workspace that a fork is a copy of.
    """

    node_id: NodeId
    after: int | None = None
    parent_epoch: int = 0


@dataclass(frozen=True, slots=True)
class FinishPreparing:
    """Its node has created it.

    Attributes:
        epoch: The placement this is about; a report about another one is ignored.
        policy: Version of the policy that it was created with.
    """

    epoch: int
    root_path: str = ""
    git_branch: str = ""
    sandbox_level: str = ""
    policy: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """It cannot be created, or its node cannot stop it."""

    epoch: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Report:
    """Its node reports its activity; `used_at` is None if it was not used."""

    epoch: int
    is_busy: bool
    usage: Usage | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lapse:
    """Its node reports that it no longer runs there.

    Attributes:
        epoch: The placement this is about.
        failure: Why; None if it was stopped.
    """

    epoch: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """A user or a call uses or watches it."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Record that its users are warned of the autostop."""


@dataclass(frozen=True, slots=True)
class SetTtl:
    """Change its lifetime, counted from its start."""

    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start it again, or create a failed one again."""

    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stop:
    """End all its processes and keep its files."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class FinishStopping:
    """Its processes have ended."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove it with its files.

    Attributes:
        is_node_lost: Whether to delete it without its node, because the node is lost; the node is
            ordered to clean up when it registers again.
    """

    is_node_lost: bool = False


@dataclass(frozen=True, slots=True)
class FinishRemoving:
    """Its files are removed."""

    epoch: int


@dataclass(frozen=True, slots=True)
class MarkNodeLost:
    """Its node stopped responding."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class Recover:
    """Its node registered again and still has it, in this state."""

    node_id: NodeId
    epoch: int
    state: State


@dataclass(frozen=True, slots=True)
class Grant:
    """Replace the secrets that it may use."""

    secret_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Change its network policy and limits; None leaves one unchanged."""

    network: NetworkPolicy | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class ConfirmPolicy:
    """Its node has applied a policy."""

    epoch: int
    policy: int


Command = (
    Place
    | FinishPreparing
    | Fail
    | Report
    | Lapse
    | Use
    | Warn
    | SetTtl
    | Start
    | Stop
    | FinishStopping
    | Remove
    | FinishRemoving
    | MarkNodeLost
    | Recover
    | Grant
    | SetPolicy
    | ConfirmPolicy
)
