"""The egress rules of a workspace, selected by the listener that a request arrived at."""

from dataclasses import dataclass, field

from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.policy import Policy
from toolrunner.primitives.domain import WorkspaceId


@dataclass(frozen=True, slots=True)
class Rules:
    """The egress rules of one workspace.

    Attributes:
        workspace_id: The workspace.
        policy: The targets that it may reach.
        grants: Secrets that the proxy adds for it.
        token: The token that requests must send on a port that other processes can connect to;
            empty for a listener inside of a network namespace.
    """

    workspace_id: WorkspaceId
    policy: Policy = field(default_factory=Policy)
    grants: tuple[Grant, ...] = ()
    token: str = field(default="", repr=False)
