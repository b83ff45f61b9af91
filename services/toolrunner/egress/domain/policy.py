"""The egress policy of a workspace; no I/O.

Two checks apply to each request. May this host and port be requested by name, with this protocol?
And after its name was resolved: may a workspace connect to all of the addresses? The connection
then uses one of the checked addresses, so a name that resolves differently a moment later (DNS
rebinding) has no effect.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, Self, assert_never

from parley.public_addresses import is_public
from toolrunner.egress.domain.errors import PolicyInvalid, Reason, Refused
from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.hosts import HostPattern, HostPort
from toolrunner.primitives.domain import WorkspaceId

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "bitbucket": ("bitbucket.org:443", "api.bitbucket.org:443"),
    "github": (
        *("github.com:443", "api.github.com:443", "codeload.github.com:443"),
        *("uploads.github.com:443", "*.githubusercontent.com:443"),
    ),
    "gitlab": ("gitlab.com:443",),
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A named list of hosts that the operator of a node defined."""

    name: str
    hosts: tuple[HostPattern, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `name=host host:port *.host`.

        Raises:
            ValueError: It is not valid.
        """
        name, _, hosts = text.partition("=")
        if not name.isidentifier() or not hosts.split():
            raise ValueError(f"is {text!r}, give a name, =, and hosts with a space between them")
        try:
            return cls(name, tuple(map(HostPattern.parse, hosts.split())), text)
        except PolicyInvalid as error:
            raise ValueError(f"is {text!r}: {error}") from None

    def __str__(self) -> str:
        return self.text


def hosts_of(name: str, own: Iterable[Preset] = ()) -> tuple[HostPattern, ...]:
    """Return the hosts of a preset; the operator's own override the built-in ones.

    Raises:
        PolicyInvalid: There is no such preset.
    """
    known = {preset.name: preset.hosts for preset in own}
    if name in known:
        return known[name]
    if name not in PRESETS:
        there = ", ".join(sorted({*known, *PRESETS}))
        raise PolicyInvalid(
            name, f"is no preset; there are {there}, and TOOLRUNNER_EGRESS_PRESETS adds more"
        )
    return tuple(map(HostPattern.parse, PRESETS[name]))


class Access(StrEnum):
    """The general access of a workspace."""

    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class Transport(Enum):
    """The protocol that is used with a target."""

    TLS = "TLS"
    HTTP = "plain HTTP"
    RAW = "anything but TLS and HTTP"


USUAL_PORTS: Final = {Transport.TLS: 443, Transport.HTTP: 80}


@dataclass(frozen=True, slots=True)
class Policy:
    """The targets that one workspace may reach.

    Attributes:
        access: The general access.
        allowed: With `PROXY`: the allowed targets.
        denied: Targets that are refused in any case.
        private: Targets in the node's own network that its operator allowed.
    """

    access: Access = Access.NONE
    allowed: tuple[HostPattern, ...] = ()
    denied: tuple[HostPattern, ...] = ()
    private: frozenset[HostPort] = frozenset()

    @classmethod
    def read(
        cls,
        access: Access,
        *,
        presets: Iterable[str] = (),
        own_presets: Iterable[Preset] = (),
        allowed_hosts: Iterable[str] = (),
        denied_hosts: Iterable[str] = (),
        private: Iterable[HostPort] = (),
    ) -> Self:
        """Parse a policy.

        Raises:
            PolicyInvalid: One of the texts cannot be parsed.
        """
        own = tuple(own_presets)
        of_presets = [pattern for preset in presets for pattern in hosts_of(preset, own)]
        return cls(
            access,
            (*of_presets, *map(HostPattern.parse, allowed_hosts)),
            tuple(map(HostPattern.parse, denied_hosts)),
            frozenset(private),
        )

    def allows(self, host_port: HostPort, transport: Transport) -> bool:
        """Return whether the target may be requested by name with this protocol."""
        if any(_is_denied(pattern, host_port) for pattern in self.denied):
            return False
        match self.access:
            case Access.NONE:
                return False
            case Access.PROXY:
                return any(_is_allowed(pattern, host_port, transport) for pattern in self.allowed)
            case Access.OPEN:
                return True
            case _:
                assert_never(self.access)

    def check_host_port(self, host_port: HostPort, transport: Transport) -> None:
        """Refuse a target that may not be requested by name.

        Raises:
            Refused: It may not.
        """
        if self.allows(host_port, transport):
            return
        if self.access is Access.NONE:
            raise Refused(Reason.NO_NETWORK, f"{host_port} cannot be reached from this workspace.")
        if any(_is_denied(pattern, host_port) for pattern in self.denied):
            raise Refused(Reason.DENIED, f"{host_port} is denied to this workspace.")
        raise Refused(
            Reason.NOT_ALLOWED,
            f"{host_port} is not allowed to this workspace by {transport.value}.",
        )

    def check_addresses(self, host_port: HostPort, addresses: Iterable[str]) -> None:
        """Refuse a target if any of its addresses is not public.

        Raises:
            Refused: One is not, and the operator did not allow this target.
        """
        if host_port in self.private:
            return
        if not all(map(is_public, addresses)):
            raise Refused(
                Reason.PRIVATE_ADDRESS, f"{host_port} leads to an address that is not public."
            )


def _is_denied(pattern: HostPattern, host_port: HostPort) -> bool:
    return pattern.meets(host_port.host) and pattern.port in (None, host_port.port)


def _is_allowed(pattern: HostPattern, host_port: HostPort, transport: Transport) -> bool:
    if not pattern.meets(host_port.host) or (transport is Transport.RAW) != pattern.is_raw:
        return False
    return host_port.port == (pattern.port or USUAL_PORTS.get(transport))


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
