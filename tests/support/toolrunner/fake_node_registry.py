"""A chatd that knows nodes and nothing else: the fake behind NodeService."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from parley.api.workspace.v1 import node_service_pb2 as api
from parley.api.workspace.v1.node_service_pb2_grpc import (
    NodeServiceServicer,
    add_NodeServiceServicer_to_server,
)
from parley.rpc import Address, Problem
from parley.rpc.problem import trailers


@dataclass
class FakeNodeRegistry(NodeServiceServicer):
    """Remembers what nodes say, and gives orders.

    Attributes:
        registrations: Every registration.
        heartbeats: Every heartbeat.
        drains: Every good-bye.
        orders: What the next answer orders.
        is_forgetful: Whether the next heartbeat is refused as of an unknown node.
        secrets: Values by the names of secrets; others are not granted.
        uses: Every wish for one.
        outages: How many of the next wishes find the database away.
    """

    registrations: list[api.RegisterNodeRequest] = field(default_factory=list)
    heartbeats: list[api.HeartbeatRequest] = field(default_factory=list)
    drains: list[api.DrainNodeRequest] = field(default_factory=list)
    orders: list[api.WorkspaceOrder] = field(default_factory=list)
    is_forgetful: bool = False
    secrets: dict[str, bytes] = field(default_factory=dict)
    uses: list[api.UseSecretRequest] = field(default_factory=list)
    outages: int = 0
    _heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def RegisterNode(  # noqa: N802 (the name is the proto's)
        self, request: api.RegisterNodeRequest, context: Any
    ) -> api.RegisterNodeResponse:
        self.registrations.append(request)
        await self._tell()
        return api.RegisterNodeResponse(
            registration_epoch=len(self.registrations),
            heartbeat_interval_ms=200,
            lost_after_ms=45_000,
        )

    async def Heartbeat(  # noqa: N802 (the name is the proto's)
        self, request: api.HeartbeatRequest, context: Any
    ) -> api.HeartbeatResponse:
        if self.is_forgetful:
            self.is_forgetful = False
            await _refuse(
                context, grpc.StatusCode.FAILED_PRECONDITION, "STALE_NODE", "register again"
            )
        self.heartbeats.append(request)
        await self._tell()
        orders, self.orders = self.orders, []
        return api.HeartbeatResponse(orders=orders)

    async def DrainNode(  # noqa: N802 (the name is the proto's)
        self, request: api.DrainNodeRequest, context: Any
    ) -> api.DrainNodeResponse:
        self.drains.append(request)
        return api.DrainNodeResponse()

    async def UseSecret(  # noqa: N802 (the name is the proto's)
        self, request: api.UseSecretRequest, context: Any
    ) -> api.UseSecretResponse:
        if self.outages:
            self.outages -= 1
            await _refuse(context, grpc.StatusCode.UNAVAILABLE, "DATABASE_UNAVAILABLE", "wait")
        self.uses.append(request)
        if request.secret_name not in self.secrets:
            message = f"the secret {request.secret_name} is not granted: not_granted"
            await _refuse(context, grpc.StatusCode.PERMISSION_DENIED, "SECRET_NOT_GRANTED", message)
        return api.UseSecretResponse(value=self.secrets[request.secret_name])

    async def until(self, is_so: Callable[[], bool], within_s: float = 20.0) -> None:
        """Wait until something is so after what was heard."""
        async with asyncio.timeout(within_s), self._heard:
            await self._heard.wait_for(is_so)

    async def _tell(self) -> None:
        async with self._heard:
            self._heard.notify_all()


async def _refuse(context: Any, status: grpc.StatusCode, reason: str, message: str) -> None:
    problem = Problem(status, reason, message)
    await context.abort(status, problem.message, trailers(problem, domain="workspace.parley"))


@asynccontextmanager
async def node_registry(directory: Path) -> AsyncIterator[tuple[FakeNodeRegistry, Address]]:
    """Serve a registry of nodes on a socket."""
    registry = FakeNodeRegistry()
    address = Address.parse(f"unix:{directory}/chatd.sock")
    server = grpc.aio.server()
    add_NodeServiceServicer_to_server(registry, server)
    server.add_insecure_port(address.target)
    await server.start()
    try:
        yield registry, address
    finally:
        await server.stop(None)
