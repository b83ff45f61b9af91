"""A stack as a value: its services, the number of processes of each, and their addresses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from parley.cli.home.layout import Home, write_private
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
    """The number of processes of each service."""

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
    """The TCP addresses of a stack; all other connections use UNIX sockets."""

    #: One per gateway.
    http: tuple[HostPort, ...]
    mcp_demo: HostPort
    #: Service -> one address per process; services without metrics are left out.
    metrics: Mapping[str, tuple[HostPort, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Caller:
    """The environment and directories of the process that starts the stack."""

    python: str
    pid: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stack:
    """All inputs of a plan."""

    home: Home
    sizes: Sizes
    ports: Ports
    caller: Caller
    #: The public origin of the stack; None for the address of the first gateway.
    given_public_url: str | None = None

    @property
    def public_url(self) -> str:
        """The origin in links, cookies and checks."""
        return self.given_public_url or self.ports.http[0].url

    def metrics_url(self, service: str, number: int) -> str | None:
        """Return the metrics URL of one process of `service`; None if it has none."""
        addresses = self.ports.metrics.get(service)
        return None if addresses is None else f"{addresses[number].url}/metrics"

    def address(self, service: str, number: int) -> str:
        """Return the address of one process of `service`."""
        if service == MCP_DEMO:
            return f"tcp:{self.ports.mcp_demo}"
        return f"unix:{self.home.socket(f'{service}-{number}')}"

    def instance_file(self, service: str, number: int) -> Path | None:
        """Return the instance file of one process of `service`; None if it has none."""
        return self.home.instance_file(f"{service}-{number}") if service == CHATD else None

    def addresses(self, service: str) -> tuple[str, ...]:
        """Return the addresses of the processes of `service`."""
        return tuple(self.address(service, number) for number in range(self.sizes.of(service)))


def prefix_of(service: str) -> str:
    """Return the prefix of the settings of `service`."""
    return service.upper().replace("-", "_")


def write_endpoints(stack: Stack, database_url: str) -> None:
    """Write `endpoints.json`, with which other programs of this user find the stack."""
    document = {
        "http": stack.ports.http[0].url,
        "public_url": stack.public_url,
        "api_key_file": str(stack.home.api_key_file),
        "grpc": {
            service: list(stack.addresses(service))
            for service in (GATEWAY, CHATD, TOOLRUNNER, MCPGATEWAY)
        },
        "metrics": {
            service: [stack.metrics_url(service, number) for number in range(len(addresses))]
            for service, addresses in stack.ports.metrics.items()
        },
        "database": database_url,
    }
    write_private(stack.home.endpoints_file, json.dumps(document, indent=2) + "\n")
