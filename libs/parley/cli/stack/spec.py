"""A stack as a value: which services it has, how many of each, and where they meet."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from parley.cli.home.layout import Home
from parley.cli.stack.ports import HostPort

TOOLRUNNER, MCPGATEWAY, CHATD, GATEWAY = "toolrunner", "mcpgateway", "chatd", "gateway"
MCP_DEMO = "mcp-demo"

#: Service -> the services that it calls, and that are therefore started before it.
STARTS_AFTER: Mapping[str, tuple[str, ...]] = {
    MCP_DEMO: (),
    TOOLRUNNER: (),
    MCPGATEWAY: (MCP_DEMO,),
    CHATD: (TOOLRUNNER, MCPGATEWAY),
    GATEWAY: (CHATD,),
}


#: Services that can serve metrics.
SERVICES_WITH_METRICS = (TOOLRUNNER, MCPGATEWAY, CHATD, GATEWAY)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many processes of each service to run."""

    chatd: int = 1
    gateway: int = 1
    toolrunner: int = 1
    mcpgateway: int = 1

    def of(self, service: str) -> int:
        """Return the number of processes of `service`."""
        counts = {
            CHATD: self.chatd,
            GATEWAY: self.gateway,
            TOOLRUNNER: self.toolrunner,
            MCPGATEWAY: self.mcpgateway,
        }
        return counts.get(service, 1)


@dataclass(frozen=True, slots=True)
class Ports:
    """The TCP addresses of a stack; all else meets on UNIX sockets."""

    #: One per gateway.
    http: tuple[HostPort, ...]
    mcp_demo: HostPort
    #: Service -> one address per process; services without metrics are left out.
    metrics: Mapping[str, tuple[HostPort, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Caller:
    """The process that starts the stack, as far as its children see it."""

    python: str
    pid: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stack:
    """Everything that a plan depends on."""

    home: Home
    sizes: Sizes
    ports: Ports
    caller: Caller
    #: The origin that people reach the stack by; None for the address of the first gateway.
    given_public_url: str | None = None

    @property
    def public_url(self) -> str:
        """The origin in links, cookies and checks."""
        return self.given_public_url or self.ports.http[0].url

    def metrics_url(self, service: str, number: int) -> str | None:
        """Return where one process of `service` serves metrics; None if it does not."""
        addresses = self.ports.metrics.get(service)
        return None if addresses is None else f"{addresses[number].url}/metrics"

    def address(self, service: str, number: int) -> str:
        """Return where one process of `service` listens."""
        if service == MCP_DEMO:
            return f"tcp:{self.ports.mcp_demo}"
        return f"unix:{self.home.socket(f'{service}-{number}')}"

    def addresses(self, service: str) -> tuple[str, ...]:
        """Return where the processes of `service` listen."""
        return tuple(self.address(service, number) for number in range(self.sizes.of(service)))


def prefix_of(service: str) -> str:
    """Return what the names of the settings of `service` begin with."""
    return service.upper().replace("-", "_")
