"""Everything that can be asked of a workspace or told about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from chatd.workspaces.domain.spec import Limits, NetworkPolicy
from chatd.workspaces.domain.workspace import Failure, NodeId, State, StopReason, Usage


@dataclass(frozen=True, slots=True)
class Place:
    """Give it to a node.

    Attributes:
        after: The placement that this one follows, None for whichever; after another one it is
            old news.
        parent_epoch: Number of the placement of what a fork is a copy of.
    """

    node_id: NodeId
    after: int | None = None
    parent_epoch: int = 0


@dataclass(frozen=True, slots=True)
class FinishPreparing:
    """Its node made it.

    Attributes:
        epoch: The placement this is about; another one is no longer of interest.
        policy: Number of the policy that it was made with.
    """

    epoch: int
    root_path: str = ""
    git_branch: str = ""
    sandbox_level: str = ""
    policy: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """It cannot be made, or its node cannot stop it."""

    epoch: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Report:
    """Its node says what it does; `used_at` None says that nothing was done with it."""

    epoch: int
    is_busy: bool
    usage: Usage | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lapse:
    """Its node says that it does not run there any more.

    Attributes:
        epoch: The placement this is about.
        failure: Why; None if it was stopped.
    """

    epoch: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """Somebody works in it or watches it."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Its people are warned that it will stop."""


@dataclass(frozen=True, slots=True)
class SetTtl:
    """Change its lifetime, counted from its start."""

    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start it again, or make a failed one again."""

    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stop:
    """End everything in it and keep its files."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class FinishStopping:
    """Nothing of it runs any more."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove it with its files.

    Attributes:
        is_node_lost: Whether nobody need be asked, because its node is known to be lost; it is
            told to clean up when it comes back.
    """

    is_node_lost: bool = False


@dataclass(frozen=True, slots=True)
class FinishRemoving:
    """Its files are gone."""

    epoch: int


@dataclass(frozen=True, slots=True)
class MarkNodeLost:
    """Its node stopped answering."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class Recover:
    """Its node is back and still has it, in this state."""

    node_id: NodeId
    epoch: int
    state: State


@dataclass(frozen=True, slots=True)
class Grant:
    """Let it use these secrets, and no others."""

    secret_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Change what it may reach and use; None leaves one as it is."""

    network: NetworkPolicy | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class ConfirmPolicy:
    """Its node goes by a policy."""

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
