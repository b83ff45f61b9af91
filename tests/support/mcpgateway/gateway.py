"""A whole mcpgateway for tests: real PostgreSQL, a real socket, real MCP servers."""

import asyncio
import random  # noqa: TID251 (a composition root of tests)
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from mcpgateway.app import mcpgateway
from mcpgateway.settings import HttpUrl, Settings
from parley.api.mcp.v1.authorization_service_pb2_grpc import McpAuthorizationServiceStub
from parley.api.mcp.v1.runtime_service_pb2_grpc import McpRuntimeServiceStub
from parley.api.mcp.v1.server_service_pb2_grpc import McpServerServiceStub
from parley.api.mcp.v1.tool_service_pb2_grpc import McpToolServiceStub
from parley.clock import Clock, SystemClock
from parley.egress.policy import Policy
from parley.identity import Role, ServiceName, Signer, SigningKey, TrustFile, User, UserId
from parley.process import Environment, OpenFiles, Process, TimeOrderedIds
from parley.rpc import Address, connect
from parley.secrets import Keyring
from parley.settings import Secret
from parley.telemetry import InMemoryTelemetry

ADMIN = User(UserId("01900000-0000-7000-8000-00000000000a"), Role.ADMIN)
MEMBER = User(UserId("01900000-0000-7000-8000-00000000000b"), Role.MEMBER)


@dataclass(frozen=True, slots=True)
class McpGateway:
    """A running mcpgateway and how chatd and the gateway call it."""

    settings: Settings
    chatd: grpc.aio.Channel
    gateway: grpc.aio.Channel

    @property
    def runtime(self) -> McpRuntimeServiceStub:
        """The runtime service, as chatd calls it."""
        return McpRuntimeServiceStub(self.chatd)

    @property
    def servers(self) -> McpServerServiceStub:
        """The server service, as the gateway calls it."""
        return McpServerServiceStub(self.gateway)

    @property
    def tools(self) -> McpToolServiceStub:
        """The tool service, as the gateway calls it."""
        return McpToolServiceStub(self.gateway)

    @property
    def authorization(self) -> McpAuthorizationServiceStub:
        """The authorization service, as the gateway calls it."""
        return McpAuthorizationServiceStub(self.gateway)


@dataclass(frozen=True, slots=True)
class KnownGateway:
    """A gateway that a mcpgateway asks, and the key of the mcpgateway that it trusts."""

    address: Address
    key: SigningKey


def make_settings(
    directory: Path,
    database_url: str,
    *,
    demo_url: str | None = None,
    allowed: str = "",
    asked: KnownGateway | None = None,
) -> tuple[Settings, dict[ServiceName, SigningKey]]:
    """Return settings whose files lie in `directory`, and the keys of every service."""
    directory.mkdir(mode=0o700, exist_ok=True)
    keys = {service: SigningKey.generate() for service in ServiceName}
    if asked is not None:
        keys[ServiceName.MCPGATEWAY] = asked.key
    for service, key in keys.items():
        TrustFile(directory / "trust.json").add_key(service, key)
    keys[ServiceName.MCPGATEWAY].save(directory / "signing.pem")
    if not (directory / "master.json").exists():
        Keyring.generate().save(directory / "master.json")
    settings = Settings(
        listen=Address.parse(f"unix:{directory}/mcp.sock"),
        trust_file=directory / "trust.json",
        signing_key_file=directory / "signing.pem",
        environment=Environment.DEVELOPMENT,
        database_url=Secret(database_url),
        database_connections_max=8,
        master_key_file=directory / "master.json",
        allowed_hosts=Policy.parse(allowed),
        demo_server_url=None if demo_url is None else HttpUrl(demo_url),
        public_url=HttpUrl("https://parley.example"),
        gateway=() if asked is None else (asked.address,),
    )
    return settings, keys


@asynccontextmanager
async def mcp_gateway(
    directory: Path,
    database_url: str,
    *,
    demo_url: str | None = None,
    allowed: str = "",
    clock: Clock | None = None,
    asked: KnownGateway | None = None,
) -> AsyncIterator[McpGateway]:
    """Run a mcpgateway and give channels to it."""
    settings, keys = make_settings(
        directory, database_url, demo_url=demo_url, allowed=allowed, asked=asked
    )
    telemetry = InMemoryTelemetry("mcpgateway").telemetry
    clock, chance = clock or SystemClock(), random.Random()
    process = Process(
        service="mcpgateway",
        instance="mcpgateway-1",
        stopping=asyncio.Event(),
        clock=clock,
        telemetry=telemetry,
        random=chance,
        new_id=TimeOrderedIds(clock, chance),
        open_files=OpenFiles(limit=4096, limit_at_start=1024),
    )

    def channel(service: ServiceName) -> grpc.aio.Channel:
        return connect(
            settings.listen,
            audience=ServiceName.MCPGATEWAY,
            signer=Signer(service, keys[service], clock),
            telemetry=telemetry,
        )

    async with (
        mcpgateway(settings, process),
        channel(ServiceName.CHATD) as chatd,
        channel(ServiceName.GATEWAY) as gateway,
    ):
        yield McpGateway(settings, chatd, gateway)
