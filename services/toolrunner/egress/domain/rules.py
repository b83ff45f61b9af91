"""The egress rules of a workspace, selected by its listener, and the limits of its connections."""

from dataclasses import dataclass, field

from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.policy import Policy
from toolrunner.primitives.domain import WorkspaceId


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits; times in seconds.

    Attributes:
        connections: Concurrent connections.
        head_bytes: Size of an HTTP head, and of a ClientHello.
        head_s: Time until the head is complete.
        connect_s: Time to resolve the name, connect and complete the TLS handshake.
        idle_s: Time without a byte in one direction.
        total_s: Duration of one connection.
        sent_bytes: Bytes sent per connection.
        received_bytes: Bytes received per connection.
    """

    connections: int = 128
    head_bytes: int = 32 * 1024
    head_s: float = 15.0
    connect_s: float = 20.0
    idle_s: float = 300.0
    total_s: float = 4 * 3600.0
    sent_bytes: int = 4 * 1024**3
    received_bytes: int = 32 * 1024**3


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
