"""The authorization service of a stack's mcpgateway, as its gateway calls it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from parley.api.mcp.v1.authorization_service_pb2_grpc import McpAuthorizationServiceStub
from parley.cli.supervision import process_table
from parley.clock import SystemClock
from parley.identity import ServiceName, Signer, SigningKey
from parley.rpc import Address, connect
from parley.telemetry import InMemoryTelemetry
from support.stack.local_stack import LocalStack


@dataclass(frozen=True, slots=True)
class Authorizing:
    """What of a mcpgateway a login needs."""

    authorization: McpAuthorizationServiceStub


@asynccontextmanager
async def authorizing(stack: LocalStack) -> AsyncIterator[Authorizing]:
    """Call the mcpgateway of a stack as its gateway does."""
    table = process_table.load(stack.home.processes_file)
    (address,) = [each.address for each in table.processes if each.service == "mcpgateway"]
    key = SigningKey.load(stack.home.signing_key_file(ServiceName.GATEWAY))
    async with connect(
        Address.parse(address),
        audience=ServiceName.MCPGATEWAY,
        signer=Signer(ServiceName.GATEWAY, key, SystemClock()),
        telemetry=InMemoryTelemetry("test").telemetry,
    ) as channel:
        yield Authorizing(McpAuthorizationServiceStub(channel))
