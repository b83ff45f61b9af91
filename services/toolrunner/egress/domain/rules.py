"""What the proxy knows of a workspace by the listener that a request came to."""

from dataclasses import dataclass, field

from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.policy import Policy
from toolrunner.primitives.domain import WorkspaceId


@dataclass(frozen=True, slots=True)
class Rules:
    """What one workspace may do outside.

    Attributes:
        workspace_id: The workspace.
        policy: What it may reach.
        grants: Secrets that the proxy adds for it.
        token: What requests show on a port, where others could connect too; empty for a door.
    """

    workspace_id: WorkspaceId
    policy: Policy = field(default_factory=Policy)
    grants: tuple[Grant, ...] = ()
    token: str = field(default="", repr=False)
